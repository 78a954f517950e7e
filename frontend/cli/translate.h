// translate.h: a graph as calls of the public interface, op by op as its text says.
#ifndef FUSEC_FRONTEND_CLI_TRANSLATE_H
#define FUSEC_FRONTEND_CLI_TRANSLATE_H

#include "fusec.h"
#include "ir/graph.h"

struct translation;
// Dims are taken at their values of now. g must outlive the translation, and contexts that ran it.
struct translation *translate_new(const struct graph *g);
void translate_free(struct translation *t);

// Makes the calls: in lazy contexts a pending graph is built, in eager ones each op is computed.
// in: a handle an input, borrowed. out: a handle an output, to be let go with translate_release.
// False: fc_error(ctx) has the words, and out has nothing to release. One call at a time.
bool translate_run(struct translation *t, fc_context *ctx, const fc_tensor *in, fc_tensor *out);
void translate_release(const struct translation *t, const fc_tensor *out);

#endif
