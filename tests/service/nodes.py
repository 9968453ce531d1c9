"""A stintd with two tenants and nodes whose agents are spoken for by hand: each says what a test has it say of its health."""

import secrets

from harness import Client, check, token
from node import Node

NODES = 8
XID = {"kind": "xid", "gpu": 1, "code": 79}


class World:
    def __init__(self, stintd):
        self.stintd, self.owner = stintd, stintd.owner
        owner = self.owner
        owner.make("/v1/types", {"name": "h100", "vram": "80Gi"})
        owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
        self.here, self.there = ("w" + secrets.token_hex(6) for _ in range(2))
        self.who = {}
        for name in (self.here, self.there):
            owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": 0}})
            self.who[name] = Client(stintd.port, token(owner, name, "u" + name, "admin")["token"])
        join = owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": NODES})["token"]
        self.nodes, self.health, self.rows = {}, {}, {}
        for i in range(NODES):
            gpu = {"type": "h100", "count": 2, "vram": "80Gi", "uuids": [f"GPU-{i}-0", f"GPU-{i}-1"]}
            node = self.nodes[f"n{i}"] = Node(stintd.port, f"n{i}", gpu=gpu)
            check(node.register(join).status == 201, "n%d does not join", i)
            self.health[node.name], self.rows[node.name] = {"health": "ok"}, {}
            self.say(node.name)

    def say(self, name):
        answer = self.nodes[name].status(self.rows[name].values(), node=self.health[name])
        check(answer.status == 200, "a status of %s: %d %s", name, answer.status, answer.text)

    def turn(self):
        """Every agent follows its list, and says what it has."""
        for name, node in self.nodes.items():
            doc = node.desired()
            if doc:
                self.rows[name] = {j["job"]: {"job": j["job"], "stay": j["stay"], "task": t["task"], "state": "running"}
                                   for j in doc["jobs"] for t in j["tasks"]}
            self.say(name)

    def until(self, what, sentence):
        def ok():
            self.turn()
            return what()
        self.stintd.wait(ok, sentence)

    def state(self, name):
        return self.owner.get("/v1/nodes/" + name).json["state"]

    def states(self):
        return {n["name"]: n["state"] for n in self.owner.get("/v1/nodes").json["nodes"]}

    def job(self, account):
        body = {"name": "n" + account, "gpus": 2, "limit": "1h", "command": ["true"]}
        job = self.who[account].make("/v1/jobs", body)["id"]
        get = lambda: self.who[account].get("/v1/jobs/" + job).json
        self.until(lambda: get()["state"] == "running" and any(job in rows for rows in self.rows.values()), "the job does not run")
        for name in self.nodes:
            if job in self.rows[name]:
                return job, name
        check(False, "the job is nowhere")

    def incidents(self, client, query=""):
        answer = client.get("/v1/incidents" + query)
        check(answer.status == 200, "%d %s", answer.status, answer.text)
        return answer.json["incidents"]

    def sick(self, name, fault=XID, reason="GPU 1 had XID 79 and needs a reboot"):
        self.health[name] = {"health": "failed", "reason": reason, "fault": fault}
