// Answers of the API, as far as pages read them (doc/reference/api.md).
export type Grant = { node: string; gpus: number[]; mig_start?: number };
export type Job = {
  id: string; name: string; account: string; user: string; state: string; class: string; priority: number; gpus: number;
  submitted: string; started: string | null; ended: string | null; running_since?: string; run_seconds?: number;
  exit_code: number | null; reason: string; preemptions: number; lost_gpu_seconds: number;
  placement: { stay: number; type: string; grants: Grant[] } | null;
  spec: Record<string, unknown> & { tasks?: number; gpus?: number; limit?: string; type?: string; command?: string[] };
};
export type Reason = { code: string; blocks: boolean; text: string; measure?: { unit: string; used: number; asked: number; bound: number } };
export type Why = {
  job: string; state: string; reasons: Reason[]; start_estimate?: string | null; start_earliest?: string; start_latest?: string; cost_most?: string | null;
};
export type Answer = Why & { variant: Record<string, unknown>; displaces: { job: string; account: string; name?: string }[]; detail?: string };
export type Quota = {
  account: string; guarantee: Record<string, number>; floor: Record<string, number>; max: Record<string, number>;
  held: Record<string, number>; inside_gpu: number; borrowed_gpu: number;
};
export type Account = { name: string; parent: string | null; guarantee: Record<string, number>; max: Record<string, number>; weight: number };
export type View = { name: string; page: string; query: string; saved: string };
export type Counts = {
  account: string; states: Record<string, { jobs: number; gpus: number }>;
  by?: string; groups?: { key: string; jobs: number; waiting: number; gpus: number }[]; groups_more?: number;
};
export type Node = {
  name: string; pool: string; type: string; gpus: number; state: string; rack?: string; block?: string; zone?: string; gpus_free?: number;
  jobs: string[]; reason?: string; since?: string; by?: string; passed?: string; test_at?: string;
  /** Whether its latest test was answered; absent: its agent cannot test it. */
  tested?: boolean;
  flags?: { flag: string; reason: string; since: string; last: string }[];
};
export type Check = { check: string; gpu?: number; verdict: string; value?: number; limit?: number };
export type Trial = { at: string; test?: number; level?: string; passed: boolean; reason?: string; ms?: number; results?: Check[] };
export type Past = { at: string; state: string; by?: string; reason?: string };
/** One side of a case; `other` where one sees both. */
export type Side = {
  job: string; name: string; account: string; side: "slowed" | "slows"; state: string; action?: string; node: string; gpu: number;
  p99_ratio?: number; p99_ratio_now?: number; since: string; last: string; times: number; text: string; other?: string;
};
export type PastJob = {
  job: string; name: string; account: string; user: string; gpus: number; state: string; priority: number; submitted: string; since: string | null;
  until?: string; for?: string; for_name?: string; for_account?: string; waited?: string;
};
export type PastEvent = {
  at: string; what: string; state: string; node?: string; job?: string; name?: string; account?: string; user?: string; gpus?: number;
  lost_gpu_seconds?: number; for?: string; for_name?: string; for_account?: string;
};
/** The fleet at a moment. */
export type History = Devices & {
  at: string; from: string; to: string; exact: boolean; states: Record<string, { jobs: number; gpus: number }>;
  waiting: PastJob[]; waiting_more: number; leaving: PastJob[]; leaving_more: number; closed: { name: string; state: string }[];
  events_since: string; events: PastEvent[]; events_more: number;
};
export type Devices = { runs: [string, number, number][]; nodes: string[]; devices: string };
export type Budget = {
  account: string; cap: string | null; budget: string | null; spent: string; running: string; held: string; reserved: string; left: string | null;
};
export type BillLine = {
  account: string; component: string; unit: string; gpu: string; level: string; quantity: number; quantity_per_unit: number;
  rate_udollars: number | null; factor_bp: number | null; amount: string;
};
export type Bill = {
  account: string; period: string; from: string; to: string; zone: string; closed: boolean; currency: string; total: string; owed: string;
  lines: BillLine[];
};
export type Booking = {
  id: string; name: string; account: string; user: string; state: string; degraded: boolean; ready: string | null; reason: string | null; from: string; to: string; zone: string; type: string;
  tasks: number; gpus: number; pool: string | null; series: string | null; held_until?: string | null; price?: { amount: string } | null; cancel_fee?: string | null;
};
export type Entry = {
  seq: number; at: number; kind: string; account: string; job?: string; user?: string; name?: string; gpu?: string; level?: string; from?: number;
  to?: number; grants?: [string, number[] | string, number, number][]; lines?: [string, number, number, number, number, number, number][];
};
