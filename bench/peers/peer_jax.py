"""The workloads in JAX, jitted: with XLA's own choice of vector width, and with 512 bits."""
import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np


def add_relu(x, y):
    return jax.nn.relu(x + y)


def bias_gelu_residual(x, b, r):
    return jax.nn.gelu(x + b, approximate=False) + r


def softmax(x):
    return jax.nn.softmax(x, -1)


def layernorm(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * weight + bias


def rmsnorm(x, weight):
    x32 = x.astype(jnp.float32)
    mean = jnp.square(x32).mean(-1, keepdims=True)
    return (x32 * jax.lax.rsqrt(mean + 1e-6)).astype(x.dtype) * weight


def swiglu(x, y):
    return jax.nn.silu(x) * y


def sum_all(x):
    return x.sum()


def colsum(x):
    return x.sum(0)


def var_rows(x):
    return x.var(-1, ddof=1)


def transpose_add(x, y):
    return x + y.T


def cross_entropy(logits, target):
    picked = jnp.take_along_axis(logits, target[:, None], 1)[:, 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


def adam(p, g, m, v):
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * 0.001 * g
    step = m / 0.271 * 0.001
    return p - step / (jnp.sqrt(v / 0.002997001) + 1e-8), m, v


def matmul_bias_gelu(a, b, bias):
    return jax.nn.gelu(a @ b + bias, approximate=True)


def mlp(x, w1, b1, w2, b2):
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


def mlp_u8(x, w1, b1, w2, b2):
    return mlp(x.astype(jnp.float32) / 255.0, w1, b1, w2, b2)


def attention(q, k, v):
    return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) * 0.125, -1) @ v


def black_scholes(spot, strike, years):
    s, k, t = jnp.abs(spot), jnp.abs(strike) + 0.5, jnp.abs(years) + 0.25
    spread = jnp.sqrt(t) * 0.3
    d1 = (jnp.log(s / k) + t * 0.065) / spread
    n1 = (jax.lax.erf(d1 * 0.70710678) + 1) * 0.5
    n2 = (jax.lax.erf((d1 - spread) * 0.70710678) + 1) * 0.5
    discounted = k * jnp.exp(t * -0.02)
    call = s * n1 - discounted * n2
    return call, call - s + discounted


def scale_mask_softmax(scores, mask):
    return jax.nn.softmax(scores * 0.125 + mask, -1)


def huber_loss(x, target):
    d = jnp.abs(x - target)
    return jnp.where(d <= 1, jnp.square(d) * 0.5, d - 0.5).mean()


def blend(x, y, a):
    x, y, a = x.astype(jnp.uint16), y.astype(jnp.uint16), a.astype(jnp.uint16)
    return ((x * a + y * (255 - a) + 127) // 255).astype(jnp.uint8)


def mix(x, y):
    s = x.astype(jnp.int32) + (y.astype(jnp.int32) >> 1)
    return jnp.clip(s, -32768, 32767).astype(jnp.int16)


def hash_i32(x):
    for _ in range(2):
        x = (x ^ (x >> 16)) * 73244475
    return x ^ (x >> 16)


def count_positive(x):
    return (x > 0).sum(-1)


def argmax(x):
    return x.argmax(-1)


def cumsum(x):
    return jnp.cumsum(x, -1)


def cumsum_columns(x):
    return jnp.cumsum(x, 0)


def running_mean(x, weight):
    w = jnp.abs(weight)
    return jnp.cumsum(x * w, -1) / jnp.cumsum(w, -1)


def sort(x):
    return jnp.sort(x, -1)


def argsort(x):
    return jnp.argsort(x, -1)


def topk(x):
    return tuple(jax.lax.top_k(x, 64))


def median(x):
    return jnp.sort(x, -1)[:, 512]


WAYS = {
    "add_relu": add_relu,
    "bias_gelu_residual_f32": bias_gelu_residual,
    "bias_gelu_residual_bf16": bias_gelu_residual,
    "softmax_f32": softmax,
    "softmax_bf16": softmax,
    "layernorm_f32": layernorm,
    "rmsnorm_bf16": rmsnorm,
    "swiglu_bf16": swiglu,
    "sum_all_f32": sum_all,
    "colsum_f32": colsum,
    "var_rows_f32": var_rows,
    "transpose_add_f32": transpose_add,
    "cross_entropy_fwd": cross_entropy,
    "adam_f32": adam,
    "matmul_bias_gelu": matmul_bias_gelu,
    "mlp_784_128_10_b64": mlp,
    "mlp_u8_784_128_10_b1": mlp_u8,
    "attention_naive": attention,
    "black_scholes_f32": black_scholes,
    "scale_mask_softmax_f32": scale_mask_softmax,
    "huber_loss_f32": huber_loss,
    "blend_u8": blend,
    "mix_i16": mix,
    "hash_i32": hash_i32,
    "count_positive_f32": count_positive,
    "argmax_f32": argmax,
    "sort_f32": sort,
    "sort_long_f32": sort,
    "argsort_i32": argsort,
    "topk_f32": topk,
    "median_f32": median,
    "add_relu_f16": add_relu,
    "layernorm_f16": layernorm,
    "cumsum_f32": cumsum,
    "cumsum_columns_f32": cumsum_columns,
    "cumsum_long_f32": cumsum,
    "running_mean_f32": running_mean,
    "embedding_f32": lambda table, token: jnp.take(table, token, 0),
    "embedding_grad_f32": lambda token, g: jnp.zeros((32768, g.shape[1])).at[token].add(g),
    "histogram_u8": lambda x: jnp.zeros(256, jnp.int64).at[x].add(1),
    "histogram_64k": lambda counts, x: counts.at[x].add(1),
    "dynamic_slice_f32": lambda x, s: jax.lax.dynamic_slice(x, s, (x.shape[0], 3000)),
    "slice_update_f32": lambda new, cache, s: jax.lax.dynamic_update_slice(cache, new, s),
    "one_hot_f32": lambda i: jax.nn.one_hot(i, 1000, dtype=jnp.float32),
}


def waited(call):
    """A call that returns when its results are there."""

    def run(*inputs):
        out = call(*inputs)
        if isinstance(out, tuple):
            jax.block_until_ready(out)
        else:
            out.block_until_ready()
        return out

    return run


class Peer:
    def __init__(self, threads):
        self.version = f"jax {jax.__version__}"

    def put(self, array, dtype):
        if dtype == "bf16":
            array = array.view(ml_dtypes.bfloat16)
        elif dtype == "i64":
            array = array.astype(np.int32)  # JAX's own index type
        return jax.device_put(array).block_until_ready()

    def numpy(self, value, dtype):
        return np.asarray(value, dtype=np.float32 if dtype in ("f16", "bf16") else None)

    def ways(self, graph, request):
        way = WAYS.get(graph)
        for bits in (None, 512) if way else ():
            options = {"xla_cpu_prefer_vector_width": bits} if bits else {}
            compiled = jax.jit(way, compiler_options=options)
            yield f"vectors of {bits or 'its choice'}", waited(compiled)
