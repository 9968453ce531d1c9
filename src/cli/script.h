/*
 * A script of this machine as a job: `stint submit train.sh`. Its #STINT lines are options, as they stand on the command line; the
 * #SBATCH lines of a script for Slurm are translated (cli/sbatch.h). Both are read up to the script's first command.
 *
 * What is sent is the script's text, so it need not be in the image. The command line has the last word.
 */
#ifndef ST_CLI_SCRIPT_H
#define ST_CLI_SCRIPT_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/cli.h"

#define ST_SCRIPT_BYTES_MAX (64 << 10)

/* The words of one line, argv[0] being the verb. */
typedef struct st_script_line {
    int line; /* of the script; 0: made from all its #SBATCH lines */
    ST_VEC(char *) words;
} st_script_line;

typedef ST_VEC(st_script_line) st_script_lines;

typedef struct st_script {
    st_script_lines lines;
    char *name; /* of the job, unless another is given: the file's name without its ending */
    char *text; /* what the job runs */
} st_script;

void st_script_done(st_script *script);

/* Whether the word names a script of this machine: a file that begins with #!. */
bool st_script_is(const char *word);

/* Reads the script at `path`, to be called with `args`. What of #SBATCH lines has no counterpart is said on `notes`. */
int st_script_read(const char *path, const char *verb, int nargs, char **args, FILE *notes,
                   st_script *ret, st_err *err);

/* Its options into the verb's struct, with the line that is wrong named. */
int st_script_options(const st_script *script, const char *path, const st_cli_row *rows, void *into,
                      st_err *err);

/* Adds the words of `text` as a shell splits them: blanks, quotes, backslashes, # begins a comment. */
int st_script_split(const char *text, st_script_line *into, st_err *err);

#endif
