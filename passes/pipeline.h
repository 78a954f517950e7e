// pipeline.h: the steps of plan_build that are no graph-to-graph passes.
#ifndef FUSEC_PASSES_PIPELINE_H
#define FUSEC_PASSES_PIPELINE_H

#include "passes/plan.h"

struct graph *graph_specialise(const struct graph *g);
void plan_eager_figures(struct plan *p);

#endif
