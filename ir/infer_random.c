// infer_random.c: dtypes and shapes of random numbers. The state is data, two numbers of 64 bits:
// the key, that is the seed, and a counter that is another one for each array of random numbers.
#include "ir/infer.h"

bool
infer_random(struct inference *f, uint32_t i)
{
    struct shape s = infer_in_shape(f, i);
    uint8_t dtype = infer_in_dtype(f, i);
    if (dtype != DT_u64 || s.rank != 1 || infer_hint(f, s.dim[0]) != 2)
        return infer_error(f, "the state is %s%s; it must be u64[2]: a key and a counter",
                           dtype_name(dtype), infer_shape_text(f, &s));
    if (f->op == OP_dropout)
        return true;
    f->shape.rank = (uint8_t)f->attr[0];
    for (uint32_t d = 0; d < f->shape.rank; d++) {
        f->shape.dim[d] = (sym){f->attr[1 + d]};
        if (infer_hint(f, f->shape.dim[d]) < 0)
            return infer_error(f, "axis %u of the shape is %lld; it must not be negative", d,
                               (long long)infer_hint(f, f->shape.dim[d]));
    }
    return true;
}

static bool
check_probability(struct inference *f, int64_t bits)
{
    double p = scalar_to_double(DT_f64, (uint64_t)bits);
    return (p >= 0 && p <= 1) ||
           infer_error(f, "p is %g; a probability lies between 0 and 1", p);
}

static bool
dropout(struct inference *f)
{
    f->shape = infer_in_shape(f, 0);
    f->dtype = infer_float_of(infer_in_dtype(f, 0));
    infer_cast_in(f, 0, f->dtype);
    return infer_random(f, 1) && check_probability(f, f->attr[0]);
}

static bool
randint(struct inference *f)
{
    int64_t low = f->attr[f->attr[0] + 1], high = f->attr[f->attr[0] + 2], n;
    f->dtype = DT_i64;
    if (high <= low)
        return infer_error(f, "no integer is from %lld to below %lld", (long long)low,
                           (long long)high);
    if (__builtin_sub_overflow(high, low, &n) || n > (int64_t)1 << 32)
        return infer_error(f, "from %lld to below %lld are more than 2^32 integers; make them of "
                              "random_bits", (long long)low, (long long)high);
    return true;
}

bool
infer_random_numbers(struct inference *f)
{
    if (f->op == OP_dropout)
        return dropout(f);
    if (!infer_random(f, 0))
        return false;
    if (f->op == OP_randint)
        return randint(f);
    f->dtype = DT_bool;
    if (f->op == OP_bernoulli)
        return check_probability(f, f->attr[f->attr[0] + 1]);
    f->dtype = (uint8_t)f->attr[f->attr[0] + 1];
    return dtype_is_float(f->dtype) ||
           infer_error(f, "gives floats, not %s; randint gives integers", dtype_name(f->dtype));
}
