"""The workloads in ONNX Runtime: standard ops, all of its own graph optimisations.

Its CPU kernels take no bf16 but in casts: a bf16 workload is computed in f32 between two casts.
"""
import ctypes

import numpy as np
import onnx
import onnxruntime
from onnx import parser

BF16 = onnx.TensorProto.BFLOAT16
ONNX_TYPE = {"f32": "float", "bf16": "bfloat16", "i64": "int64", "u8": "uint8"}

TEXT = {
    "add_relu": "s = Add(x, y) out0 = Relu(s)",
    "bias_gelu_residual_f32": "s = Add(x, b) g = Gelu(s) out0 = Add(g, r)",
    "bias_gelu_residual_bf16": "s = Add(x32, b32) g = Gelu(s) z = Add(g, r32)",
    "softmax_f32": "out0 = Softmax <axis = -1> (x)",
    "softmax_bf16": "z = Softmax <axis = -1> (x32)",
    "layernorm_f32": "out0 = LayerNormalization <epsilon = 1e-5> (x, weight, bias)",
    "rmsnorm_bf16": "z = RMSNormalization <epsilon = 1e-6> (x32, weight32)",
    "swiglu_bf16": "s = Sigmoid(x32) t = Mul(x32, s) z = Mul(t, y32)",
    "sum_all_f32": "out0 = ReduceSum <keepdims = 0> (x)",
    "colsum_f32": "a = Constant <value_ints = [0]> () out0 = ReduceSum <keepdims = 0> (x, a)",
    "var_rows_f32": """a = Constant <value_ints = [1]> () n = Constant <value_float = {n}> ()
        m = ReduceMean(x, a) d = Sub(x, m) s = ReduceSumSquare <keepdims = 0> (d, a)
        out0 = Div(s, n)""",
    "transpose_add_f32": "t = Transpose <perm = [1, 0]> (y) out0 = Add(x, t)",
    "cross_entropy_fwd": "out0 = SoftmaxCrossEntropyLoss(logits, target)",
    "adam_f32": """
        c9 = Constant <value_float = 0.9> () c1 = Constant <value_float = 0.1> ()
        c999 = Constant <value_float = 0.999> () c001 = Constant <value_float = 0.001> ()
        c271 = Constant <value_float = 0.271> () c299 = Constant <value_float = 0.002997001> ()
        c8 = Constant <value_float = 1e-8> ()
        ma = Mul(m_in, c9) mb = Mul(g, c1) m = Add(ma, mb)
        va = Mul(v_in, c999) vb = Mul(g, c001) vc = Mul(vb, g) v = Add(va, vc)
        sa = Div(m, c271) step = Mul(sa, c001)
        ra = Div(v, c299) rb = Sqrt(ra) root = Add(rb, c8)
        d = Div(step, root) p = Sub(p_in, d)""",
    "matmul_bias_gelu": 's = Gemm(a, b, bias) out0 = Gelu <approximate = "tanh"> (s)',
    "mlp_784_128_10_b64": "s = Gemm(x, w1, b1) h = Relu(s) out0 = Gemm(h, w2, b2)",
    "mlp_u8_784_128_10_b1": """c = Constant <value_float = 255.0> () f = Cast <to = 1> (x)
        p = Div(f, c) s = Gemm(p, w1, b1) h = Relu(s) out0 = Gemm(h, w2, b2)""",
    "attention_naive": """c = Constant <value_float = 0.125> ()
        t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t) u = Mul(s, c)
        w = Softmax <axis = -1> (u) out0 = MatMul(w, v)""",
    "black_scholes_f32": """
        half = Constant <value_float = 0.5> () quarter = Constant <value_float = 0.25> ()
        one = Constant <value_float = 1.0> () h = Constant <value_float = 0.70710678> ()
        c3 = Constant <value_float = 0.3> () c65 = Constant <value_float = 0.065> ()
        rate = Constant <value_float = -0.02> ()
        s = Abs(spot) ka = Abs(strike) k = Add(ka, half) ta = Abs(years) t = Add(ta, quarter)
        ra = Sqrt(t) spread = Mul(ra, c3)
        sk = Div(s, k) log = Log(sk) drift = Mul(t, c65) top = Add(log, drift)
        d1 = Div(top, spread) d2 = Sub(d1, spread)
        a1 = Mul(d1, h) b1 = Erf(a1) e1 = Add(b1, one) n1 = Mul(e1, half)
        a2 = Mul(d2, h) b2 = Erf(a2) e2 = Add(b2, one) n2 = Mul(e2, half)
        rt = Mul(t, rate) factor = Exp(rt) discounted = Mul(k, factor)
        gain = Mul(s, n1) cost = Mul(discounted, n2) call = Sub(gain, cost)
        without = Sub(call, s) put = Add(without, discounted)""",
    "scale_mask_softmax_f32": """c = Constant <value_float = 0.125> () u = Mul(scores, c)
        m = Add(u, mask) out0 = Softmax <axis = -1> (m)""",
    "huber_loss_f32": """one = Constant <value_float = 1.0> ()
        half = Constant <value_float = 0.5> ()
        e = Sub(x, target) d = Abs(e) near = LessOrEqual(d, one)
        square = Mul(d, d) a = Mul(square, half) b = Sub(d, half) loss = Where(near, a, b)
        out0 = ReduceMean <keepdims = 0> (loss)""",
    "cumsum_f32": "a = Constant <value_int = 1> () out0 = CumSum(x, a)",
    "cumsum_columns_f32": "a = Constant <value_int = 0> () out0 = CumSum(x, a)",
    "cumsum_long_f32": "a = Constant <value_int = 0> () out0 = CumSum(x, a)",
    "running_mean_f32": """a = Constant <value_int = 1> () w = Abs(weight) t = Mul(x, w)
        s = CumSum(t, a) n = CumSum(w, a) out0 = Div(s, n)""",
}


def typed(entries, names):
    return ", ".join(
        f"{ONNX_TYPE[e['dtype']]}[{', '.join(map(str, e['dims']))}] {n}"
        for e, n in zip(entries, names)
    )


def model(graph, request):
    """The workload's model, and the names of its inputs and outputs."""
    outputs = [e["name"] for e in request["outputs"]]
    # in ONNX an output may not have an input's name
    inputs = [e["name"] + "_in" * (e["name"] in outputs) for e in request["inputs"]]
    body = TEXT[graph].format(n=float(request["inputs"][0]["dims"][-1] - 1))
    if request["outputs"][0]["dtype"] == "bf16":
        casts = [f"{n}32 = Cast <to = 1> ({n})" for n in inputs]
        body = " ".join(casts) + body + f" {outputs[0]} = Cast <to = {BF16}> (z)"
    text = (
        '<ir_version: 10, opset_import: ["": 23]>\n'
        f"{graph} ({typed(request['inputs'], inputs)})"
        f" => ({typed(request['outputs'], outputs)}) {{ {body} }}"
    )
    return parser.parse_model(text).SerializeToString(), inputs, outputs


class Peer:
    def __init__(self, threads):
        self.version = f"onnxruntime {onnxruntime.__version__}"
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.log_severity_level = 3

    def put(self, array, dtype):
        if dtype == "bf16":
            return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, BF16)
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)

    def numpy(self, value, dtype):
        if dtype != "bf16":
            return value.numpy()
        size = 2 * int(np.prod(value.shape()))
        bits = np.frombuffer(ctypes.string_at(value.data_ptr(), size), np.uint16)
        return bits.reshape(value.shape())

    def ways(self, graph, request):
        if graph not in TEXT:
            return
        text, inputs, outputs = model(graph, request)
        session = onnxruntime.InferenceSession(
            text, self.options, providers=["CPUExecutionProvider"]
        )

        def call(*values):
            return session.run_with_ort_values(outputs, dict(zip(inputs, values)))

        yield "float32" if request["outputs"][0]["dtype"] == "bf16" else "own kernels", call
