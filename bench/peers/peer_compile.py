"""The workloads in PyTorch, compiled: each way of stating one in the default mode, and in the tuned
mode where there are matmuls."""
import torch

import peer_torch

TUNED = {"matmul_bias_gelu", "mlp_784_128_10_b64", "mlp_u8_784_128_10_b1",
         "attention_naive"}


class Peer(peer_torch.Peer):
    def __init__(self, threads):
        super().__init__(threads)
        self.version = f"torch.compile {torch.__version__}"

    def ways(self, graph, request):
        modes = ["default"] + (["max-autotune-no-cudagraphs"] if graph in TUNED else [])
        torch._dynamo.reset()  # guards of other workloads' graphs cost calls time
        for way in peer_torch.WAYS.get(graph, []):
            for mode in modes:
                yield f"{way.__name__} {mode}", torch.compile(
                    way, mode=mode, dynamic=False, fullgraph=True
                )
