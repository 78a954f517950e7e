"""What the NumPy programs share: numbers made by a formula, the same as example.h's."""
import numpy as np


def scramble(i):
    """Scrambles the bits of an array of uint32: MurmurHash3's last steps, by Austin Appleby."""
    i = (i ^ i >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    i = (i ^ i >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return i ^ i >> np.uint32(16)


def uniform(n, seed):
    """n numbers of [0, 1) in f32, multiples of 2^-24: element i is a hash of seed * 2^24 + i."""
    i = np.arange(n, dtype=np.uint32) + np.uint32(seed << 24)
    return (scramble(i) >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
