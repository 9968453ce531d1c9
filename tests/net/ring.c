/* Adds up ranks around a ring of MPI, then by an all-reduce of a megabyte, and says from which containers. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 131072

int main(int argc, char **argv)
{
    int rank, size, sum = 0, length;
    char name[MPI_MAX_PROCESSOR_NAME], names[64][MPI_MAX_PROCESSOR_NAME];
    double *data = malloc(COUNT * sizeof *data), *all = malloc(COUNT * sizeof *all);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    if (rank > 0)
        MPI_Recv(&sum, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += rank + 1;
    MPI_Send(&sum, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&sum, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++)
        data[i] = rank + i;
    MPI_Allreduce(data, all, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int wrong = sum != size * (size + 1) / 2, others = 0;

        for (int i = 0; i < COUNT; i++)
            wrong += all[i] != (double)size * i + size * (size - 1) / 2;
        for (int i = 1; i < size; i++)
            others += strcmp(names[i], names[0]) != 0;
        printf("MPI ring of %d: %s, %d elsewhere\n", size, wrong ? "WRONG" : "right", others);
    }
    MPI_Finalize();
    free(data);
    free(all);
    return 0;
}
