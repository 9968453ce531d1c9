/*
 * /openapi.json: what the document says of the service as a whole, of each noun and of the parts of paths. The rest
 * comes from the table of routes (routes.c) and the schemas (schemas*.c). A noun that is missing here fails a unit test.
 */
#include "api/schemas.h"
#include "api/state.h"

static const st_openapi_word tags[] = {
    {"jobs", "Jobs: submit, list, explain, change and cancel them, and read their output."},
    {"arrays", "Arrays: many jobs that were submitted as one."},
    {"whatif", "What would happen if a job or a quota were another; nothing is kept."},
    {"counts", "How many jobs there are, by state."},
    {"series", "Figures over time: of accounts, jobs, nodes and GPUs."},
    {"neighbours", "Jobs that slow each other on a shared GPU."},
    {"sizes", "Named sizes of jobs."},
    {"classes", "Priority classes that jobs may name."},
    {"images", "The catalogue of container images."},
    {"image-pulls", "Images from registries of the site, on their way."},
    {"rules", "Scripts that check every submit."},
    {"accounts", "Accounts: their quota, use, plan, budget, secrets and billing details."},
    {"services", "Services: replicas of a job behind one address."},
    {"notices", "What people are told of by webhook or mail."},
    {"users", "People and programs with a token."},
    {"tokens", "Tokens, and who has them."},
    {"views", "Views of the console that you saved."},
    {"roles", "Roles, and what each may do."},
    {"whoami", "Who you are to this service."},
    {"session", "Logging a browser in and out."},
    {"bookings", "Bookings of GPUs for a window or a series of windows."},
    {"calendar", "Bookings by time, and feeds of them for calendar programs."},
    {"prices", "Price books: past, present and future."},
    {"plan", "How accounts without a plan of their own are charged."},
    {"bills", "Bills by month, their entries, proofs and forecasts."},
    {"billing", "Months, their closing, and what stintd signs about its books."},
    {"invoices", "Invoices and credit notes."},
    {"issuer", "Who issues invoices."},
    {"credits", "Credits that wait for a second owner."},
    {"fleet", "The fleet as a whole: what it costs, and where its GPUs were."},
    {"types", "GPU types."},
    {"pools", "Pools: nodes under one set of rules."},
    {"nodes", "Nodes: their state, tests and past."},
    {"history", "The fleet at a past moment."},
    {"incidents", "What was wrong with nodes, why, and whom it concerned."},
    {"devices", "Every GPU of the fleet, as a map."},
    {"events", "What happens, as a stream."},
    {"audit", "Who changed what, and the proof that the list is whole."},
    {"admin", "Running the service: backups, restores, keys, the clock, new nodes."},
    {"tunnels", "Ways into running jobs: commands and ports."},
    {"agent", "What agents on nodes call."},
    {"service", "Whether the service is up, its metrics, and this document."},
    {0},
};

static const st_openapi_word parts[] = {
    {"jobs/{id}", "the job's id, as the submit answered it"},
    {"arrays/{id}", "the array's id, as the submit answered it"},
    {"bookings/{id}", "the booking's id"},
    {"incidents/{id}", "the incident's id"},
    {"{line}", "the connection, as stintd named it to the agent"},
    {"tunnels/{id}", "the tunnel, as its opening answered it"},
    {"tokens/{id}", "the token's id, which is not the token"},
    {"{name}", "its name"},
    {"accounts/{name}", "the account's name"},
    {"{key}", "the name of the secret or notice"},
    {"{period}", "a month, 2026-10, or open for the one that runs"},
    {"{number}", "the invoice's number"},
    {"{job}", "the job's id"},
    {"{stay}", "which start of the job this is, counted from 1"},
    {"{task}", "the task's number, counted from 0"},
    {0},
};

int st_api_openapi(st_strbuf *out, st_err *err)
{
    static const st_openapi_info info = {
        .title = "Stint",
        .version = ST_VERSION,
        .description = "One API for every team that shares the fleet. You see your own account and "
                       "those below it, and nothing else.",
        .license = "Apache-2.0",
        .roles = st_role_words,
        .tags = tags,
        .parts = parts,
    };
    return st_openapi_write(&info, st_api_routes(), st_api_schemas(), out, err);
}
