/*
 * What the #SBATCH lines of a Slurm script ask for, as options of `stint submit`.
 *
 * A node of Slurm's is a task here, with the GPUs of that node; with more tasks than nodes its GPUs are divided among them. Memory
 * per node, CPU or GPU becomes memory per task. Options that mean nothing here are named with what there is instead; those that
 * nobody knows are refused, so that no wish is lost in silence.
 */
#ifndef ST_CLI_SBATCH_H
#define ST_CLI_SBATCH_H

#include "cli/script.h"

typedef struct st_sbatch st_sbatch;

st_sbatch *st_sbatch_new(const char *path, FILE *notes);
void st_sbatch_free(st_sbatch *sbatch);
ST_DEFINE_FREEP(st_sbatch, st_sbatch_free)

/* One line's options. */
int st_sbatch_add(st_sbatch *sbatch, const st_script_line *line, st_err *err);

/* All of it, as words behind the verb in `into`. */
int st_sbatch_words(st_sbatch *sbatch, st_script_line *into, st_err *err);

/* Commands that make a task look like one of Slurm's to a shell: its variables, and `srun`, which runs the command in this task.
 * One line, with its end. */
void st_sbatch_prologue(const st_sbatch *sbatch, st_strbuf *out);

/* The table, for its page in doc/: what each option becomes. NULL behind the last. */
const char *st_sbatch_option(size_t i, const char **ret_about);

#endif
