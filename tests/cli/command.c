// command.c: the fusec command as its users call it: results on standard output or in files, words
// on standard error, exit codes.
#include "frontend/cli/npy.h"

#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/fusec_command_XXXXXX";
static struct str said; // by the last command

static void
setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    cr_assert(mkdtemp(dir));
}

static void
teardown(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -r %s", dir);
    cr_expect_eq(system(command), 0);
    str_free(&said);
}
TestSuite(command, .init = setup, .fini = teardown);

// Runs "fusec ARGUMENTS" in the directory; returns the exit code. What it says on both streams is
// in `said`.
static int
fusec(const char *fmt, ...)
{
    struct str command = {0};
    va_list list;
    char line[2000];
    va_start(list, fmt);
    vsnprintf(line, sizeof line, fmt, list);
    va_end(list);
    str_printf(&command, "cd %s && %s %s 2>&1", dir, FUSEC_COMMAND, line);
    FILE *f = popen(str_text(&command), "r");
    cr_assert(f);
    said.n = 0;
    for (size_t n; (n = fread(line, 1, sizeof line, f)) > 0;)
        str_addn(&said, line, n);
    int status = pclose(f);
    str_free(&command);
    cr_assert(WIFEXITED(status), "fusec was killed");
    return WEXITSTATUS(status);
}

static void
expect(int line, int code, int want, const char *words)
{
    cr_expect_eq(code, want, "line %d: exit code %d: %s", line, code, str_text(&said));
    cr_expect(strstr(str_text(&said), words), "line %d: '%s' lacks '%s'", line, str_text(&said),
              words);
}
#define EXPECT(code, want, words) expect(__LINE__, code, want, words)

static void
write_text(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

static void
write_array(const char *name, uint8_t dtype, uint8_t rank, const int64_t *dim, void *data)
{
    char path[300];
    struct tensor t = {.dtype = dtype, .rank = rank, .data = data};
    struct diag d = {0};
    memcpy(t.dim, dim, rank * sizeof *dim);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    cr_assert(npy_write(path, &t, &d), "%s", d.text);
}

static struct tensor
read_array(const char *name)
{
    char path[300];
    struct tensor t;
    struct diag d = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    cr_assert(npy_read(path, &t, &d), "%s", d.text);
    return t;
}

static void
write_example(void)
{
    float x[6] = {1, -2, 3, -4, 5, -6}, b[3] = {0, 1, 2};
    write_text("f.fuse", "graph @f(%x: f32[M=2, N=3], %b: f32[N]) {\n"
                         "  %y = relu (add %x, %b)\n  return y = %y, (sum %y {axes = [1]})\n}\n");
    write_array("x.npy", DT_f32, 2, (const int64_t[]){2, 3}, x);
    write_array("b.npy", DT_f32, 1, (const int64_t[]){3}, b);
}

Test(command, run_computes_files_from_files)
{
    const float y[6] = {1, 0, 5, 0, 6, 0}, sums[2] = {6, 6};
    write_example();
    for (int eager = 0; eager < 2; eager++) {
        EXPECT(fusec("run f.fuse --in x=x.npy --in b=b.npy --out y=y.npy --out=out1=s.npy %s",
                     eager ? "--eager" : ""), 0, "");
        cr_expect_eq(said.n, 0, "%s", str_text(&said));
        struct tensor a = read_array("y.npy"), s = read_array("s.npy");
        cr_expect(a.dtype == DT_f32 && a.rank == 2 && a.dim[0] == 2 && a.dim[1] == 3);
        cr_expect(s.rank == 1 && s.dim[0] == 2);
        cr_expect(!memcmp(a.data, y, sizeof y) && !memcmp(s.data, sums, sizeof sums));
        free(a.data);
        free(s.data);
    }
}

Test(command, run_prints_outputs_that_have_no_file)
{
    write_example();
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=b.npy"), 0,
           "y: f32[2, 3] = 1.0 0.0 5.0 0.0 6.0 0.0\nout1: f32[2] = 6.0 6.0\n");
}

Test(command, run_refuses_what_does_not_fit)
{
    double wide[3] = {0};
    float four[4] = {0};
    write_example();
    write_array("wide.npy", DT_f64, 1, (const int64_t[]){3}, wide);
    write_array("four.npy", DT_f32, 1, (const int64_t[]){4}, four);
    write_text("bad.npy", "no array");
    EXPECT(fusec("run f.fuse --in x=x.npy"), 1, "@f needs b");
    EXPECT(fusec("run f.fuse"), 1, "@f needs x, b");
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=wide.npy"), 1,
           "f64 was found, input b expects f32");
    EXPECT(fusec("run f.fuse --in x=b.npy --in b=b.npy"), 1, "rank 1 was found, input x expects 2");
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=four.npy"), 1,
           "dim N is 3 in x (axis 1) but 4 in b (axis 0)");
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=b.npy --dim N=4"), 1, "dim N is 4 by --dim but 3");
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=bad.npy"), 1,
           "bad.npy: byte 0: found other bytes");
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=none.npy"), 1, "none.npy: cannot be opened");
    EXPECT(fusec("run f.fuse --in x=x.npy --in q=b.npy"), 1, "no input q; it has x, b");
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=b.npy --out z=z.npy"), 1,
           "no output z; it has y, out1");
    EXPECT(fusec("run f.fuse --in x=x.npy --in x=x.npy"), 2, "--in x is given twice");
    EXPECT(fusec("run f.fuse --in x"), 2, "--in x: NAME=FILE was expected");
    EXPECT(fusec("run f.fuse --out y=a --out y=b"), 2, "--out y is given twice");
    EXPECT(fusec("run f.fuse --in x=x.npy --in b=b.npy --out y=none/y.npy"), 1,
           "cannot be written");
}

Test(command, run_tells_indices_out_of_range)
{
    int64_t i[2] = {-1, 3};
    float x[3] = {1, 2, 3};
    write_text("t.fuse", "graph @t(%x: f32[N=3], %i: i64[M=2]) {\n"
                         "  return take %x, %i {axis = 0}\n}\n");
    write_array("x.npy", DT_f32, 1, (const int64_t[]){3}, x);
    write_array("i.npy", DT_i64, 1, (const int64_t[]){2}, i);
    EXPECT(fusec("run t.fuse --in x=x.npy --in i=i.npy"), 1, "index was out of range");
    i[1] = 0;
    write_array("i.npy", DT_i64, 1, (const int64_t[]){2}, i);
    EXPECT(fusec("run t.fuse --in x=x.npy --in i=i.npy"), 0, "out0: f32[2] = 3.0 1.0\n");
}

Test(command, usage_errors_have_words_and_code_2)
{
    write_example();
    EXPECT(fusec(""), 2, "usage: fusec");
    EXPECT(fusec("bench --compile --json"), 2, "--compile prints a table");
    EXPECT(fusec("bench --filter softmax_f32 some.fuse"), 2, "--filter picks among the standard");
    EXPECT(fusec("frobnicate"), 2, "unknown command 'frobnicate'");
    EXPECT(fusec("explain f.fuse --colour"), 2, "unknown argument '--colour'");
    EXPECT(fusec("explain f.fuse g.fuse"), 2, "unknown argument 'g.fuse'");
    EXPECT(fusec("explain"), 2, "a .fuse file was expected");
    EXPECT(fusec("explain f.fuse --emit"), 2, "--emit needs a value");
    EXPECT(fusec("explain f.fuse --emit c"), 2, "one of ir, kernels, llvm, asm, cuda, dot");
    EXPECT(fusec("explain f.fuse --emit ir --json"), 2, "exclude each other");
    EXPECT(fusec("run f.fuse --threads none"), 2, "a number from 1 to 1024");
    EXPECT(fusec("bench --filter no_such_workload"), 2, "no workload's name contains");
    EXPECT(fusec("bench --scale 1/none"), 2, "a number from 1 to");
    EXPECT(fusec("ops frobnicate"), 2, "no op is called 'frobnicate'; fusec ops lists all");
    EXPECT(fusec("ops softmx fc_add"), 2, "no op is called 'softmx' (softmax?), 'fc_add' (add?)");
    EXPECT(fusec("explain " FUSEC_COMMAND), 1, "is a program, not a graph");
    EXPECT(fusec("explain " FUSEC_COMMAND), 1, "fusec explain -- " FUSEC_COMMAND);
    EXPECT(fusec("devices cpu"), 2, "unknown argument 'cpu'");
    EXPECT(fusec("--help"), 0, "usage: fusec");
    EXPECT(fusec("run --help"), 0, "usage: fusec");
    EXPECT(fusec("--version"), 0, "fusec " FUSEC_VERSION "\n");
}

Test(command, explain_has_every_form_for_the_device_at_hand)
{
    write_example();
    EXPECT(fusec("--explain f.fuse --dim N=4096"), 0,
           "3 kernels, 7 array transfers -> 1 kernel, 4");
    cr_expect(!strchr(str_text(&said), '\033'), "colours that are not for a terminal");
    EXPECT(fusec("explain f.fuse --dim N=5"), 0, "dims [2, 5]");
    EXPECT(fusec("explain f.fuse --dim Q=5"), 1, "no dim of @f is called Q; there are M, N");
    EXPECT(fusec("explain f.fuse --dim N=-1"), 2, "--dim N=-1: NAME=SIZE, such as N=4096,");
    EXPECT(fusec("explain f.fuse --dim N"), 2, "--dim N: NAME=SIZE");
    EXPECT(fusec("explain f.fuse --dim N=4x"), 2, "--dim N=4x: NAME=SIZE");
    EXPECT(fusec("explain f.fuse --dim N=99999999999999999999"), 2, "NAME=SIZE");
    EXPECT(fusec("explain f.fuse --dim N=3 --dim N=4"), 2, "--dim N is given twice");
    EXPECT(fusec("explain f.fuse --json"), 0, "\"eager_kernels\": 3");
    EXPECT(fusec("explain f.fuse --emit ir"), 0, "graph @f(%x: f32[2, 3], %b: f32[3])");
    EXPECT(fusec("explain f.fuse --emit kernels --dim N=4096"), 0, "kernel fused_add_relu_sum_0");
    EXPECT(fusec("explain f.fuse --emit dot"), 0, "subgraph cluster_0");
    EXPECT(fusec("explain none.fuse"), 1, "none.fuse: cannot be opened");
    write_text("broken.fuse", "graph @g(%x: f32[2]) {\n  return sub %x\n}\n");
    EXPECT(fusec("explain broken.fuse"), 1, "broken.fuse:2:");
    write_text("unknown.fuse", "graph @g(%x: f32[2]) {\n  return quaternion %x\n}\n");
    EXPECT(fusec("explain unknown.fuse"), 1, "'quaternion', which is none (fusec ops lists them)");
#ifdef FUSEC_LLVM
    EXPECT(fusec("explain f.fuse --emit llvm"), 0, "define");
    EXPECT(fusec("explain f.fuse --emit asm"), 0, "kernel:");
#endif
}

Test(command, explain_counts_an_unrolled_loop)
{
    write_text("l.fuse", "graph @l(%x: f32[8], %y: f32[8]) {\n"
                         "  return mul (add (add (add (add %x, %y), %y), %y), %y), %y\n}\n");
    EXPECT(fusec("explain l.fuse"), 0, "  computes  add 4 times, mul\n");
}

Test(command, explain_asks_again_what_may_broadcast)
{
    write_text("b.fuse", "graph @b(%x: f32[N=4], %y: f32[M=4]) {\n  return add %x, %y\n}\n");
    EXPECT(fusec("explain b.fuse"), 0, "1 kernel");
    EXPECT(fusec("explain b.fuse --dim N=5"), 1, "do not broadcast");
    EXPECT(fusec("explain b.fuse --dim N=5 --dim M=5"), 0, "dims [5]");
}

Test(command, ops_is_a_reference)
{
    EXPECT(fusec("ops softmax"), 0, "softmax x {axis: int = -1}");
    EXPECT(fusec("ops --json exp"), 0, "\"accuracy\": \"within ");
    EXPECT(fusec("ops tanh"), 0, "gradient: mul(%g, mul(sub(1, %y), add(1, %y)))");
    EXPECT(fusec("ops --brief tanh softmax"), 0,
           "  tanh x                      hyperbolic tangent");
    EXPECT(fusec("ops --brief --json"), 2, "exclude");
    EXPECT(fusec("ops frobnicate tanh quux"), 2, "  tanh x\n      hyperbolic tangent\n");
    cr_expect(strstr(str_text(&said), "no op is called 'frobnicate', 'quux'"), "both are told");
    EXPECT(fusec("ops"), 0, "elementwise: ");
    const char *heading = strstr(str_text(&said), "elementwise: ");
    cr_expect(heading && !strstr(heading + 1, "elementwise: "), "a kind's ops stand together");
}

Test(command, bench_lists_workloads_and_prefers_the_whole_name)
{
    EXPECT(fusec("bench --list"), 0, "adam_f32\n");
    EXPECT(fusec("bench --list --filter add_relu_1000"), 0, "add_relu_1000\n");
    cr_expect_str_eq(str_text(&said), "add_relu_1000\n");
    EXPECT(fusec("bench --list --filter add_relu_100"), 0, "add_relu_1000000\n");
}

#ifdef FUSEC_LLVM
Test(command, bench_measures_a_file)
{
    write_example();
    EXPECT(fusec("bench f.fuse --json --threads 1 --dim N=4096"), 0, "\"workload\": \"f\"");
    cr_expect(strstr(str_text(&said), "\"kernels\": 1, \"eager_kernels\": 3"), "%s",
              str_text(&said));
    EXPECT(fusec("bench f.fuse f.fuse --threads 1 --dim N=4096"), 0,
           "over 2 workloads of");
    EXPECT(fusec("bench none.fuse"), 1, "cannot be opened");
}

Test(command, bench_says_what_others_need_to_repeat_it)
{
    write_example();
    EXPECT(fusec("bench f.fuse --json --hot --threads 1 --scale 1/2 --dim N=4096"), 0,
           "\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"dims\": [1, 4096]}");
    cr_expect(strstr(str_text(&said), "\"sets\": 1, \"in_cache\": true"), "%s", str_text(&said));
}

Test(command, bench_measures_compilation)
{
    write_example();
    EXPECT(fusec("bench f.fuse --compile --threads 1"), 0, "1 kernel: warm median");
    EXPECT(fusec("bench none.fuse --compile"), 1, "cannot be opened");
}
#endif
