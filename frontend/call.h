// call.h: one call of an op, on its way from the public function (made by generate.c) to a value.
// An argument that makes no sense is remembered and reported once the context is known.
#ifndef FUSEC_FRONTEND_CALL_H
#define FUSEC_FRONTEND_CALL_H

#include "frontend/context.h"

enum { CALL_ATTR = 3 * (MAX_RANK + 1) + 4, CALL_OPERANDS = 6 };

struct call {
    fc_context *ctx;
    const char *file;
    int line;
    uint16_t op;
    const char *name; // in errors: the op's, or that of the function called
    uint32_t nin;
    const fc_tensor *many; // NULL: in
    fc_tensor in[CALL_OPERANDS];
    bool has_number; // the last operand is a number instead of a tensor
    fc_num number;
    uint8_t number_dtype; // DT_NONE: weak
    bool all_axes;        // the list of axes was NULL
    uint32_t nattr;
    int64_t attr[CALL_ATTR];
    int32_t bits_at; // attribute that is a number of operand 0's dtype; -1: none
    fc_num bits;
    const char *wrong; // what is wrong with an argument
};

static inline void
call_begin(struct call *c, uint16_t op, const char *file, int line)
{
    c->ctx = NULL;
    c->file = file;
    c->line = line;
    c->op = op;
    c->name = op_name(op);
    c->nin = c->nattr = 0;
    c->many = NULL;
    c->has_number = c->all_axes = false;
    c->number_dtype = DT_NONE;
    c->bits_at = -1;
    c->wrong = NULL;
}
void call_context(struct call *c, fc_context *ctx);
static inline void
call_tensor(struct call *c, fc_tensor t)
{
    c->in[c->nin++] = t;
}
void call_tensors(struct call *c, const fc_tensor *t, int n); // borrowed until call_end
void call_number(struct call *c, fc_num x);
void call_int(struct call *c, int64_t x);
void call_bool(struct call *c, bool x);
void call_float(struct call *c, double x);
void call_dtype(struct call *c, fc_dtype d);
void call_bits(struct call *c, fc_num x);
void call_ints(struct call *c, const int64_t *v, int n);
void call_dims(struct call *c, const fc_dim *v, int n);
fc_tensor call_end(struct call *c);

// A number as a scalar of dtype d. False: an integer that d cannot hold.
bool number_bits(uint8_t d, fc_num x, uint64_t *bits);
enum { NUMBER_WORDS = 32 };
const char *number_words(fc_num x, char *words); // NUMBER_WORDS bytes
uint8_t number_dtype(fc_num x); // its own: f64, i64 or u64

// Any op, its attributes laid out as ir/graph.h says: for callers that walk the op table.
fc_tensor call_op(fc_context *ctx, uint16_t op, const fc_tensor *in, uint32_t nin,
                  const int64_t *attr, uint32_t nattr, const char *file, int line);

#endif
