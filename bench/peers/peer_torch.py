"""The workloads in PyTorch, eager: as its users write them, the fastest of the usual ways."""
import torch
import torch.nn.functional as F


def add_relu(x, y):
    return torch.relu(x + y)


def bias_gelu_residual(x, b, r):
    return F.gelu(x + b) + r


def softmax(x):
    return torch.softmax(x, -1)


def layernorm(x, weight, bias):
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def rmsnorm(x, weight):
    x32 = x.float()
    mean = x32.square().mean(-1, keepdim=True)
    return (x32 * torch.rsqrt(mean + 1e-6)).to(x.dtype) * weight


def rmsnorm_library(x, weight):
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-6)


def swiglu(x, y):
    return F.silu(x) * y


def sum_all(x):
    return x.sum()


def colsum(x):
    return x.sum(0)


def var_rows(x):
    return x.var(-1)


def transpose_add(x, y):
    return x + y.t()


def cross_entropy(logits, target):
    return F.cross_entropy(logits, target)


def adam(p, g, m, v):
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * 0.001 * g
    step = m / 0.271 * 0.001
    return p - step / (torch.sqrt(v / 0.002997001) + 1e-8), m, v


def matmul_bias_gelu(a, b, bias):
    return F.gelu(torch.addmm(bias, a, b), approximate="tanh")


def mlp(x, w1, b1, w2, b2):
    return torch.addmm(b2, torch.relu(torch.addmm(b1, x, w1)), w2)


def mlp_u8(x, w1, b1, w2, b2):
    return mlp(x.float() / 255.0, w1, b1, w2, b2)


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v


def attention_library(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=0.125)


def black_scholes(spot, strike, years):
    s, k, t = torch.abs(spot), torch.abs(strike) + 0.5, torch.abs(years) + 0.25
    spread = torch.sqrt(t) * 0.3
    d1 = (torch.log(s / k) + t * 0.065) / spread
    n1 = (torch.erf(d1 * 0.70710678) + 1) * 0.5
    n2 = (torch.erf((d1 - spread) * 0.70710678) + 1) * 0.5
    discounted = k * torch.exp(t * -0.02)
    call = s * n1 - discounted * n2
    return call, call - s + discounted


def scale_mask_softmax(scores, mask):
    return torch.softmax(scores * 0.125 + mask, -1)


def huber_loss(x, target):
    d = torch.abs(x - target)
    return torch.where(d <= 1, d * d * 0.5, d - 0.5).mean()


def huber_loss_library(x, target):
    return F.huber_loss(x, target)


def blend(x, y, a):
    x, y, a = x.to(torch.int32), y.to(torch.int32), a.to(torch.int32)
    return ((x * a + y * (255 - a) + 127) // 255).to(torch.uint8)


def mix(x, y):
    s = x.to(torch.int32) + (y.to(torch.int32) >> 1)
    return s.clamp(-32768, 32767).to(torch.int16)


def hash_i32(x):
    for _ in range(2):
        x = (x ^ (x >> 16)) * 73244475
    return x ^ (x >> 16)


def count_positive(x):
    return (x > 0).sum(-1)


def count_positive_library(x):
    return torch.count_nonzero(x > 0, -1)


def sort(x):
    return torch.sort(x, -1).values


def argsort(x):
    return torch.argsort(x, dim=-1, stable=True)


def topk(x):
    return torch.topk(x, 64, -1)


def median(x):
    return torch.sort(x, -1).values[:, 512]


def median_library(x):
    return torch.median(x, -1).values


def argmax(x):
    return x.argmax(-1)


def cumsum(x):
    return torch.cumsum(x, -1)


def cumsum_columns(x):
    return torch.cumsum(x, 0)


def running_mean(x, weight):
    w = torch.abs(weight)
    return torch.cumsum(x * w, -1) / torch.cumsum(w, -1)


def embedding(table, token):
    return F.embedding(token, table)


def embedding_index(table, token):
    return table[token]


def embedding_grad(token, g):
    return torch.zeros(32768, g.shape[1]).index_add_(0, token, g)


def embedding_grad_library(token, g):
    return torch.ops.aten.embedding_dense_backward(g, token, 32768, -1, False)


def histogram(x):
    return torch.bincount(x, minlength=256)


def histogram_add(counts, x):
    return counts.scatter_add(0, x.long(), torch.ones_like(x))


def dynamic_slice(x, start):
    i, j = start.tolist()
    return x[i:i + x.shape[0], j:j + 3000].clone()


def slice_update(new, cache, start):
    i, j = start.tolist()
    out = cache.clone()
    out[i:i + new.shape[0], j:j + new.shape[1]] = new
    return out


def one_hot(index):
    return torch.zeros(index.shape[0], 1000).scatter_(1, index.long()[:, None], 1.0)


def one_hot_compare(index):
    return (index[:, None] == torch.arange(1000)).float()


# graph: the ways to state it
WAYS = {
    "add_relu": [add_relu],
    "bias_gelu_residual_f32": [bias_gelu_residual],
    "bias_gelu_residual_bf16": [bias_gelu_residual],
    "softmax_f32": [softmax],
    "softmax_bf16": [softmax],
    "layernorm_f32": [layernorm],
    "rmsnorm_bf16": [rmsnorm, rmsnorm_library],
    "swiglu_bf16": [swiglu],
    "sum_all_f32": [sum_all],
    "colsum_f32": [colsum],
    "var_rows_f32": [var_rows],
    "transpose_add_f32": [transpose_add],
    "cross_entropy_fwd": [cross_entropy],
    "adam_f32": [adam],
    "matmul_bias_gelu": [matmul_bias_gelu],
    "mlp_784_128_10_b64": [mlp],
    "mlp_u8_784_128_10_b1": [mlp_u8],
    "attention_naive": [attention, attention_library],
    "black_scholes_f32": [black_scholes],
    "scale_mask_softmax_f32": [scale_mask_softmax],
    "huber_loss_f32": [huber_loss, huber_loss_library],
    "blend_u8": [blend],
    "mix_i16": [mix],
    "hash_i32": [hash_i32],
    "sum_i32": [sum_all],
    "count_positive_f32": [count_positive, count_positive_library],
    "argmax_f32": [argmax],
    "sort_f32": [sort],
    "sort_long_f32": [sort],
    "argsort_i32": [argsort],
    "topk_f32": [topk],
    "median_f32": [median, median_library],
    "add_relu_f16": [add_relu],
    "layernorm_f16": [layernorm],
    "cumsum_f32": [cumsum],
    "cumsum_columns_f32": [cumsum_columns],
    "cumsum_long_f32": [cumsum],
    "running_mean_f32": [running_mean],
    "embedding_f32": [embedding, embedding_index],
    "embedding_grad_f32": [embedding_grad, embedding_grad_library],
    "histogram_u8": [histogram],
    "histogram_64k": [histogram_add],
    "dynamic_slice_f32": [dynamic_slice],
    "slice_update_f32": [slice_update],
    "one_hot_f32": [one_hot, one_hot_compare],
}


class Peer:
    def __init__(self, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.version = f"torch {torch.__version__}"

    def put(self, array, dtype):
        tensor = torch.from_numpy(array)
        return tensor.view(torch.bfloat16) if dtype == "bf16" else tensor

    def numpy(self, value, dtype):
        return value.float().numpy() if dtype == "bf16" else value.numpy()

    def ways(self, graph, request):
        for way in WAYS.get(graph, []):
            with torch.inference_mode():
                yield way.__name__, torch.inference_mode()(way)
