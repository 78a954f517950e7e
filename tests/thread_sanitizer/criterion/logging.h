// logging.h: see criterion.h.
#include "criterion.h"
