/*
 * analyze.h - what tools/analyze tells the analyzers before each file, since they see one file at a time.
 *
 * err_set() and its relations stand in `return err_set(…)`. Without knowing that they return what they were
 * given, and that this is never ERR_OK, an analyzer follows every error as if it were a success. Never
 * compiled into anything.
 */
#include "base/assert.h"
#include "base/err.h"
#include "cli/cli.h"

#define err_set(detail, value, ...)                        \
    ({                                                     \
        enum err analyze_err = (value);                    \
        (void)err_set((detail), analyze_err, __VA_ARGS__); \
        ASSERT(analyze_err < 0); /* as err.c does */       \
        analyze_err;                                       \
    })

#define err_set_at(detail, value, offset, ...)                          \
    ({                                                                  \
        enum err analyze_err = (value);                                 \
        (void)err_set_at((detail), analyze_err, (offset), __VA_ARGS__); \
        ASSERT(analyze_err < 0);                                        \
        analyze_err;                                                    \
    })

#define cli_fail(...) ((void)cli_fail(__VA_ARGS__), CLI_FAILED)
#define cli_usage(...) ((void)cli_usage(__VA_ARGS__), CLI_USAGE)
