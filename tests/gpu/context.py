"""What every part is given, and the questions several of them ask."""
import datetime
import re
import time

from cluster import Trouble, until
from machine import call
from report import pairs

# Exit code of a job whose task could not be started, and how an agent says that it lacks a level.
NOT_STARTED = 126
LACKING = r"level \w+: |MPS|MIG mode"


class Test:
    def __init__(self, cluster, machine, report, leave_settings):
        self.cluster, self.machine, self.report = cluster, machine, report
        self.leave_settings = leave_settings  # of the GPU: no MIG, no compute mode
        self.sim = machine.sim
        self.whole_ms = 0  # what info's kernel takes on the whole GPU

    def agent_has(self, option):
        """Whether this agent knows an option: what is newer than it is skipped, not failed."""
        return option in call([self.machine.program("stint-agent"), "--help"])[1]

    def work(self, name, *arguments):
        return self.machine.work(name, *arguments)

    def refused(self, what, row):
        """A level that this agent or driver lacks is skipped, with the agent's own words."""
        reason = row.get("reason") or ""
        if row["state"] != "failed" or row.get("exit_code") != NOT_STARTED or not re.search(LACKING, reason):
            return False
        self.report.skip(what, f"refused by the agent: {row.get('reason')}")
        return True

    def ended_well(self, what, job, timeout=40):
        """Checks that it is done; (job, what it wrote as pairs), or None where it is not."""
        row, text = self.cluster.finish(job, timeout)
        if self.refused(what, row):
            return None
        seen = f"{row['state']}, exit {row.get('exit_code')}"
        if row["state"] != "done":
            seen += f": {row.get('reason') or ''} {text[-200:]}"
        return (row, pairs(text)) if self.report.check(what, row["state"] == "done", seen) else None

    def part_of_whole(self, seen):
        """How fast info's kernel was, beside the whole GPU, in words."""
        ms = float(seen.get("work_ms", 0))
        return f"{self.whole_ms / ms:.2f} of the whole GPU's speed" if ms and self.whole_ms else "speed not known"

    def crash(self, what, away=0.3):
        """Kills the agent and starts it again; that the node is back is a check of its own."""
        began = time.time()
        self.cluster.crash_agent(away)
        self.report.figure(f"agent killed {what}", f"ready again after {time.time() - began:.1f} s")

    def slices_gone(self):
        """No MIG device is left, within ten seconds."""
        if self.sim:
            return True
        try:
            until(lambda: self.machine.instances() == 0, 10, "slices are left")
        except Trouble:
            return False
        return True


def seconds_of(text):
    """A time of the API, in seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def decided_ms(row):
    """When stintd started the job, in ms since 1970."""
    return seconds_of(row["started"]) * 1e3


def start_ms(row, text):
    """From the decision to the job's own first instruction."""
    return int(pairs(text)["first_ns"]) / 1e6 - decided_ms(row)
