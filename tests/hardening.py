#!/usr/bin/env python3
"""What the linker and the compiler were told to do against misuse of a mistake, read from the ELF files of
the programs: tests/hardening.py PROGRAM...

A program is position independent, its tables are read-only once it has started and bound at once, no
segment is writable and executable, functions with buffers have guards, calls of libc with buffers of
known size are the checked ones, and functions begin with a landing pad (CET; the note that the kernel
looks for also needs start-up objects of the distribution that have it).
"""

import struct
import sys

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
DT_FLAGS, DT_FLAGS_1, DT_BIND_NOW = 30, 0x6FFFFFFB, 24
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 8, 1, 0x08000000
SHT_SYMTAB, SHT_DYNSYM = 2, 11
ENDBR64 = b"\xf3\x0f\x1e\xfa"
EM_X86_64 = 62


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        if self.bytes[:5] != b"\x7fELF\x02":
            sys.exit(f"{path} is not a 64-bit ELF file")
        head = struct.unpack_from("<HHIQQQIHHHHHH", self.bytes, 16)
        self.type, self.machine, phoff, shoff = head[0], head[1], head[4], head[5]
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, phoff + i * head[8]) for i in range(head[9])]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, shoff + i * head[10]) for i in range(head[11])]
        self.symbols = dict(self._symbols())
        self.dynamic = dict(self._dynamic())

    def _symbols(self):
        for section in self.sections:
            if section[1] not in (SHT_SYMTAB, SHT_DYNSYM):
                continue
            names = self.sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", self.bytes, at)
                end = self.bytes.index(b"\0", names + name)
                yield self.bytes[names + name:end].decode().split("@")[0], value

    def _dynamic(self):
        for segment in self.segments:
            if segment[0] == PT_DYNAMIC:
                for at in range(segment[2], segment[2] + segment[5], 16):
                    yield struct.unpack_from("<QQ", self.bytes, at)

    def code(self, address):
        for segment in self.segments:
            if segment[0] == PT_LOAD and segment[3] <= address < segment[3] + segment[5]:
                at = segment[2] + address - segment[3]
                return self.bytes[at:at + 4]
        return b""


def of(elf, kind):
    return [s for s in elf.segments if s[0] == kind]


CHECKS = {
    "position independent": lambda e: e.type == ET_DYN and e.dynamic.get(DT_FLAGS_1, 0) & DF_1_PIE,
    "read-only tables (RELRO)": lambda e: of(e, PT_GNU_RELRO),
    "bound at start (BIND_NOW)": lambda e: DT_BIND_NOW in e.dynamic or e.dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW
    or e.dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW,
    "a stack that is not executable": lambda e: all(not s[1] & PF_X for s in of(e, PT_GNU_STACK)) and of(e, PT_GNU_STACK),
    "no segment writable and executable": lambda e: all(s[1] & (PF_W | PF_X) != PF_W | PF_X for s in of(e, PT_LOAD)),
    "stack guards": lambda e: "__stack_chk_fail" in e.symbols,
    # A small static program may call nothing that could be checked.
    "checked calls of libc (FORTIFY)": lambda e: not of(e, PT_INTERP) or any(n.endswith("_chk") for n in e.symbols),
    "landing pads (CET)": lambda e: e.machine != EM_X86_64 or e.code(e.symbols.get("main", 0)) == ENDBR64,
}


def main():
    wrong = 0
    for path in sys.argv[1:]:
        elf = Elf(path)
        for name, check in CHECKS.items():
            if not check(elf):
                wrong += 1
                print(f"{path}: not so: {name}")
    print(f"{len(sys.argv) - 1} programs, {len(CHECKS)} properties each, {wrong} missing")
    sys.exit(1 if wrong or len(sys.argv) < 2 else 0)


main()
