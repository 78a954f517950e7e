// black_scholes.c: prices of options and their greeks: five results of one kernel
//
// Some fifty ops on each option. All results are asked for at once, by fc_eval: read one by one
// they would be computed one by one.
#include "example.h"
#include <math.h>

enum { N = 10000, INPUTS = 4, OUTPUTS = 5 };

// The normal distribution up to x, and its density at x.
static fc_tensor
cdf(fc_tensor x)
{
    return fc_mul_scalar(fc_add_scalar(fc_erf(fc_mul_scalar(x, sqrt(0.5))), 1), 0.5);
}

static fc_tensor
pdf(fc_tensor x)
{
    return fc_mul_scalar(fc_exp(fc_mul_scalar(fc_square(x), -0.5)), 1 / sqrt(2 * acos(-1)));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    const double low[INPUTS] = {50, 50, 0.1, 0.1}, width[INPUTS] = {100, 100, 2, 0.4}, rate = 0.03;
    static float numbers[N];
    fc_tensor in[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        uniform(numbers, N, (uint32_t)i);
        fc_tensor u = fc_cast(fc_from_host(ctx, FC_F32, numbers, FC_SHAPE(N)), FC_F64);
        in[i] = fc_add_scalar(fc_mul_scalar(u, width[i]), low[i]);
    }
    fc_tensor spot = in[0], strike = in[1], years = in[2], volatility = in[3];

    fc_tensor spread = fc_mul(volatility, fc_sqrt(years));
    fc_tensor drift = fc_add_scalar(fc_mul_scalar(fc_square(volatility), 0.5), rate);
    fc_tensor d1 = fc_add(fc_log(fc_div(spot, strike)), fc_mul(drift, years));
    d1 = fc_div(d1, spread);
    fc_tensor d2 = fc_sub(d1, spread);
    fc_tensor discounted = fc_mul(strike, fc_exp(fc_mul_scalar(years, -rate)));

    fc_tensor call = fc_sub(fc_mul(spot, cdf(d1)), fc_mul(discounted, cdf(d2)));
    fc_tensor put = fc_add(fc_sub(call, spot), discounted);
    fc_tensor delta = cdf(d1);
    fc_tensor gamma = fc_div(pdf(d1), fc_mul(spot, spread));
    fc_tensor vega = fc_mul(fc_mul(spot, pdf(d1)), fc_sqrt(years));

    const char *names[OUTPUTS] = {"call", "put", "delta", "gamma", "vega"};
    fc_tensor out[OUTPUTS] = {call, put, delta, gamma, vega};
    check(ctx, fc_eval(ctx, out, OUTPUTS));
    for (int i = 0; i < OUTPUTS; i++) {
        const void *data;
        check(ctx, fc_data(out[i], &data));
        const double *x = data;
        double sum = 0;
        for (int j = 0; j < N; j++)
            sum += x[j];
        printf("%-5s  mean %9.5f  first %9.5f %9.5f  last %9.5f\n", names[i], sum / N, x[0], x[1],
               x[N - 1]);
    }
    example_end(ctx);
    return 0;
}
