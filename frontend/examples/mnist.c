// mnist.c: a small network reads handwritten digits, compiled and eager, in batches.
//
//   mnist DIR [RUNS]
//
// DIR holds test_images.npy (u8 [n, 784]), test_labels.npy (u8 [n]) and the network in mlp/: w1,
// b1, w2, b2 (f32), with test_logits_f64.npy, its outputs computed in double precision:
//   logits = relu(pixels / 255 @ w1 + b1) @ w2 + b2
// For each batch size all images are classified in a lazy context, which compiles the graph of a
// batch, and in an eager one, which runs op by op; RUNS times (15 by default), the two in turn.
// Printed: how many are right, the largest error of a logit relative to the largest logit, kernels
// for a full batch up to its logits, and images a second (the median of the runs).
// Fails when an error is above 1e-5, or when eager and compiled logits differ in a single bit.
#include <fusec.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIXELS = 784, CLASSES = 10, MAX_RUNS = 1000 };

struct array { // a .npy file in memory, row-major
    char dtype[8];
    int rank;
    int64_t shape[4], count;
    void *data;
};

struct data {
    struct array images, labels, right; // right: the logits in double precision
    struct array w1, b1, w2, b2;
};

struct network {
    fc_context *ctx;
    fc_tensor w1, b1, w2, b2;
};

// ---- .npy files

static void
die(const char *path, const char *why)
{
    fprintf(stderr, "mnist: %s: %s\n", path, why);
    exit(1);
}

// Takes the header's text apart: {'descr': '<f4', 'fortran_order': False, 'shape': (10, 784), }
static void
parse_header(struct array *a, const char *path, const char *text)
{
    const char *descr = strstr(text, "'descr': '"), *shape = strstr(text, "'shape': (");
    if (!descr || !shape || !strstr(text, "'fortran_order': False"))
        die(path, "not a row-major .npy array");
    if (sscanf(descr, "'descr': '%7[^']'", a->dtype) != 1)
        die(path, "no dtype in the header");
    a->count = 1;
    for (const char *p = shape + strlen("'shape': ("); *p && *p != ')';) {
        char *end;
        long long n = strtoll(p, &end, 10);
        if (end == p || n < 0 || n > INT32_MAX || a->rank == 4 || a->count > INT32_MAX)
            die(path, "a shape that makes no sense here");
        a->shape[a->rank++] = n;
        a->count *= n;
        p = end + strspn(end, ", ");
    }
}

// Reads DIR/name, which must be of this dtype and of n elements (0: any number).
static struct array
load(const char *dir, const char *name, const char *dtype, int64_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path, "cannot be opened");
    unsigned char start[10];
    char text[65536];
    if (fread(start, 1, sizeof start, f) != sizeof start || memcmp(start, "\x93NUMPY\x01", 7))
        die(path, "not a .npy file of version 1");
    size_t length = start[8] + 256u * start[9];
    if (fread(text, 1, length, f) != length)
        die(path, "cut short");
    text[length] = 0;

    struct array a = {.rank = 0};
    parse_header(&a, path, text);
    if (strcmp(a.dtype, dtype) || (n && a.count != n))
        die(path, "another dtype or size than expected");
    size_t bytes = (size_t)a.count * (size_t)(dtype[2] - '0');
    a.data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!a.data || fread(a.data, 1, bytes, f) != bytes)
        die(path, "cut short");
    fclose(f);
    return a;
}

static struct data
load_all(const char *dir)
{
    struct data d;
    d.images = load(dir, "test_images.npy", "|u1", 0);
    int64_t n = d.images.shape[0];
    if (n == 0 || d.images.count != n * PIXELS)
        die("test_images.npy", "not images of 784 pixels");
    d.labels = load(dir, "test_labels.npy", "|u1", n);
    d.right = load(dir, "mlp/test_logits_f64.npy", "<f8", n * CLASSES);
    d.b1 = load(dir, "mlp/b1.npy", "<f4", 0);
    d.w1 = load(dir, "mlp/w1.npy", "<f4", PIXELS * d.b1.count);
    d.w2 = load(dir, "mlp/w2.npy", "<f4", d.b1.count * CLASSES);
    d.b2 = load(dir, "mlp/b2.npy", "<f4", CLASSES);
    return d;
}

// ---- the network

static void
check(fc_context *ctx, fc_status status)
{
    if (status == FC_OK)
        return;
    fprintf(stderr, "mnist: %s: %s\n", fc_status_name(status), ctx ? fc_error(ctx) : "");
    exit(1);
}

static struct network
network_new(const struct data *d, int mode)
{
    struct network n;
    fc_options options = {.size = sizeof options, .mode = mode};
    fc_status status = fc_context_new(&options, &n.ctx);
    check(n.ctx, status);
    int64_t hidden = d->b1.count;
    n.w1 = fc_from_host(n.ctx, FC_F32, d->w1.data, FC_SHAPE(PIXELS, hidden));
    n.b1 = fc_from_host(n.ctx, FC_F32, d->b1.data, FC_SHAPE(hidden));
    n.w2 = fc_from_host(n.ctx, FC_F32, d->w2.data, FC_SHAPE(hidden, CLASSES));
    n.b2 = fc_from_host(n.ctx, FC_F32, d->b2.data, FC_SHAPE(CLASSES));
    check(n.ctx, fc_error_code(n.ctx));
    return n;
}

// Writes the logits of count images of 784 bytes each.
static void
classify(const struct network *n, const unsigned char *images, int64_t count, float *logits)
{
    fc_scope_begin(n->ctx);
    fc_tensor x = fc_borrow(n->ctx, FC_U8, images, FC_SHAPE(count, PIXELS), NULL, NULL, NULL);
    x = fc_div_scalar(fc_cast(x, FC_F32), 255);
    fc_tensor hidden = fc_relu(fc_add(fc_matmul(x, n->w1), n->b1));
    fc_tensor y = fc_add(fc_matmul(hidden, n->w2), n->b2);
    check(n->ctx, fc_read(y, logits, (size_t)(count * CLASSES) * sizeof *logits));
    fc_scope_end(n->ctx);
}

static int64_t
kernels(const struct network *n)
{
    fc_statistics s = {.size = sizeof s};
    check(n->ctx, fc_stats(n->ctx, &s));
    return s.kernels;
}

// All images, batch by batch; returns the seconds that took.
static double
classify_all(const struct network *n, const struct data *d, int64_t batch, float *logits)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int64_t i = 0, total = d->images.shape[0]; i < total; i += batch) {
        const unsigned char *images = (const unsigned char *)d->images.data + i * PIXELS;
        classify(n, images, i + batch < total ? batch : total - i, logits + i * CLASSES);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

// ---- what came out

static double
accuracy(const struct data *d, const float *logits)
{
    int64_t right = 0, n = d->labels.count;
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * CLASSES;
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            best = row[c] > row[best] ? c : best;
        right += best == ((const unsigned char *)d->labels.data)[i];
    }
    return (double)right / (double)n;
}

static double
largest_error(const struct data *d, const float *logits)
{
    const double *right = d->right.data;
    double error = 0, largest = 0;
    for (int64_t i = 0; i < d->right.count; i++) {
        double e = fabs((double)logits[i] - right[i]);
        error = fmax(error, isnan(e) ? INFINITY : e);
        largest = fmax(largest, fabs(right[i]));
    }
    return error / largest;
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// One line of the table. True: logits are right, and the same bits eager and compiled.
static bool
report(const struct network n[2], const struct data *d, int64_t batch, int runs)
{
    int64_t total = d->images.shape[0], took[2];
    float *logits[2];
    static double seconds[2][MAX_RUNS];
    for (int mode = 0; mode < 2; mode++) { // the first time compiles
        logits[mode] = calloc((size_t)(total * CLASSES), sizeof(float));
        if (!logits[mode])
            die("logits", "out of memory");
        classify_all(&n[mode], d, batch, logits[mode]);
        took[mode] = -kernels(&n[mode]);
        classify(&n[mode], d->images.data, batch, logits[mode]);
        took[mode] += kernels(&n[mode]);
    }
    for (int run = 0; run < runs; run++)
        for (int i = 0; i < 2; i++) { // lazy first in even runs, eager first in odd ones
            int mode = i ^ (run & 1);
            seconds[mode][run] = classify_all(&n[mode], d, batch, logits[mode]);
        }
    double speed[2], error = 0;
    for (int mode = 0; mode < 2; mode++) {
        qsort(seconds[mode], (size_t)runs, sizeof(double), ascending);
        speed[mode] = (double)total / seconds[mode][runs / 2];
        error = fmax(error, largest_error(d, logits[mode]));
    }
    bool same = !memcmp(logits[0], logits[1], (size_t)(total * CLASSES) * sizeof(float));
    printf("%5lld  %8.3f  %8.3f  %8.1e  %-4s  %8lld  %5lld  %10.0f  %10.0f  %5.2f\n",
           (long long)batch, accuracy(d, logits[FC_LAZY]), accuracy(d, logits[FC_EAGER]), error,
           same ? "yes" : "NO", (long long)took[FC_LAZY], (long long)took[FC_EAGER],
           speed[FC_LAZY], speed[FC_EAGER], speed[FC_LAZY] / speed[FC_EAGER]);
    for (int mode = 0; mode < 2; mode++)
        free(logits[mode]);
    return same && error <= 1e-5;
}

int
main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : 15;
    if (argc < 2 || argc > 3 || runs < 1 || runs > MAX_RUNS) {
        fprintf(stderr, "usage: mnist DIR [RUNS, 1 to %d]\n", MAX_RUNS);
        return 2;
    }
    struct data d = load_all(argv[1]);
    struct network n[2] = {network_new(&d, FC_LAZY), network_new(&d, FC_EAGER)};
    int64_t total = d.images.shape[0], sizes[] = {1, 16, 64, total};
    printf("%s\n%lld images, %d run%s of each\n\n", fc_device_words(n[0].ctx), (long long)total,
           runs, runs == 1 ? "" : "s");
    printf("batch  accuracy            largest   same  kernels          images a second\n"
           "       compiled     eager  error     bits  compiled  eager    compiled       eager"
           "  ratio\n");
    bool right = true;
    for (int i = 0; i < 4; i++)
        right &= sizes[i] > total || report(n, &d, sizes[i], runs);

    fc_context_free(n[FC_LAZY].ctx);
    fc_context_free(n[FC_EAGER].ctx);
    struct array *arrays[] = {&d.images, &d.labels, &d.right, &d.w1, &d.b1, &d.w2, &d.b2};
    for (int i = 0; i < 7; i++)
        free(arrays[i]->data);
    return right ? 0 : 1;
}
