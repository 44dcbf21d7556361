"""What has to fail, and how: receivers that are not ready, rights that were not given, packets that are
damaged or come twice, peers that are gone."""

import time

from rxe_ends import REGION, Case, Pair

# Opcodes of the base transport header (vol. 1, table 38).
SEND_ONLY, WRITE_ONLY, READ_REQUEST, ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, COMPARE_SWAP, FETCH_ADD = (
    4, 10, 12, 17, 18, 19, 20)
READ_RESPONSE_ONLY = 16
ROLES = ("requester", "responder")


class Faults(Case):
    def seen(self, way, opcode):
        return int(self.ours.say(f"seen {way} {opcode}"))

    def until(self, true, patience=20):
        """Machines stop for a moment now and then; what has to come is waited for."""
        end = time.monotonic() + patience
        while not true():
            self.assertLess(time.monotonic(), end, "it did not come")
            self.ours.say("idle 5")

    def statuses(self, end, pair, side, count, patience=8000):
        return [c.status for c in end.wait(pair.id, side, count, patience)]

    # ---- receiver not ready ----

    def test_receives_posted_late(self):
        for role in ROLES:
            with self.subTest(role=role):
                requester, responder = self.ends(role, 4)
                # 0.01 ms, so that Soft-RoCE's NAKs of what is behind the refused packet come late, too.
                pair = Pair(requester, responder, rnr_timer=1, rnr_retries=7)
                lengths = (10, 3000, 0)
                requester.lines.answers([f"post {pair.id} send {i} source:{i}:{n}"
                                         for i, n in enumerate(lengths)])
                refusals = "rnr_received" if role == "requester" else "rnr_sent"
                self.until(lambda name=refusals: self.counters().get(name, 0) > 40)
                self.assertEqual(requester.wait(pair.id, "send", 1, 0), [])
                responder.lines.answers([f"receive {pair.id} {i} target:{4000 * i}:{n}"
                                         for i, n in enumerate(lengths)])
                self.check_done(requester.wait(pair.id, "send", 3), [(i, "send") for i in range(3)])
                self.check_done(responder.wait(pair.id, "receive", 3), [(i, "receive") for i in range(3)])
                responder.say(f"verify target 0:10:{requester.seed}:0 4000:3000:{requester.seed}:1")
                pair.close()

    def test_receives_never_posted(self):
        for role in ROLES:
            with self.subTest(role=role):
                requester, responder = self.ends(role, 4)
                pair = Pair(requester, responder, rnr_timer=14, rnr_retries=2, timeout=18)
                requester.lines.answers([f"post {pair.id} send {i} source:0:10" for i in range(2)])
                self.assertEqual(self.statuses(requester, pair, "send", 2),
                                 ["receiver-not-ready retry limit exceeded", "flushed"])
                self.assertEqual(requester.say(f"state {pair.id}"), "error")
                self.assertEqual(responder.say(f"state {pair.id}"), "rts")
                counted = self.counters()
                # The first, and two more.
                self.assertEqual(counted["rnr_received" if role == "requester" else "rnr_sent"], 3)
                pair.close()

    # ---- rights ----

    def test_refused_access(self):
        """A NAK, the right status, and both ends in error; nothing is written."""
        for role in ROLES:
            for operation, length, what in (
                    ("write", 100, "key"), ("write_imm", 100, "key"), ("read", 100, "key"),
                    ("fetch_add", 8, "key"), ("compare_swap", 8, "key"), ("write", 5000, "end"),
                    ("read", 5000, "end"), ("write", 100, "right"), ("read", 100, "right"),
                    ("fetch_add", 8, "right")):
                with self.subTest(role=role, operation=operation, what=what):
                    requester, responder = self.ends(role, 4)
                    responder.region("private", 4096, "local")
                    responder.say("fill private 0 4096 0")
                    address, key = responder.regions["private" if what == "right" else "target"]
                    if what == "key":
                        key ^= 0x5A5A00
                    if what == "end":
                        address += REGION - length + 8
                    pair = Pair(requester, responder)
                    responder.say(f"receive {pair.id} 1 target:0:100")
                    local = "target" if operation in ("read", "fetch_add", "compare_swap") else "source"
                    requester.lines.answers([
                        f"post {pair.id} {operation} 7 {local}:0:{length} to={address}:{key}",
                        f"post {pair.id} send 8 source:0:10"])
                    self.assertEqual(self.statuses(requester, pair, "send", 2),
                                     ["remote access error", "flushed"])
                    self.assertEqual(requester.say(f"state {pair.id}"), "error")
                    # Soft-RoCE has taken the receive of a WRITE with immediate before it looks at the key.
                    taken = role == "requester" and operation == "write_imm"
                    self.assertEqual(self.statuses(responder, pair, "receive", 1),
                                     ["remote access error" if taken else "flushed"])
                    self.assertEqual(responder.say(f"state {pair.id}"), "error")
                    responder.say("verify target")
                    responder.say("verify private")
                    requester.say("verify target")
                    pair.close()

    def test_message_longer_than_its_receive(self):
        for role in ROLES:
            for length in (100, 5000):
                with self.subTest(role=role, length=length):
                    requester, responder = self.ends(role, 4)
                    pair = Pair(requester, responder)
                    responder.say(f"receive {pair.id} 1 target:0:{length - 1}")
                    requester.say(f"post {pair.id} send 7 source:0:{length}")
                    # We say what vol. 1, 9.9.3 (table 58) wants; Soft-RoCE takes it for its own failure.
                    self.assertEqual(
                        (self.statuses(requester, pair, "send", 1), self.statuses(responder, pair, "receive", 1)),
                        (["remote operational error"], ["local QP operation error"]) if role == "requester" else
                        (["remote invalid request"], ["local length error"]))
                    self.assertEqual(requester.say(f"state {pair.id}"), "error")
                    self.assertEqual(responder.say(f"state {pair.id}"), "error")
                    pair.close()

    # ---- damaged packets ----

    def test_a_wrong_icrc_is_met_with_silence(self):
        for role in ROLES:
            for operation, opcode in (("write", WRITE_ONLY), ("read", READ_REQUEST),
                                      ("fetch_add", FETCH_ADD)):
                with self.subTest(role=role, operation=operation):
                    requester, responder = self.ends(role, 4)
                    there, back = self.ways(role)
                    pair = Pair(requester, responder, timeout=16)
                    self.ours.say(f"spoil {there} {opcode} 1")
                    local = "source" if operation == "write" else "target"
                    region = "words" if operation == "fetch_add" else "target"
                    requester.say(f"post {pair.id} {operation} 7 {local}:0:8 {responder.at(region)} swap=1")
                    self.until(lambda: self.seen(there, opcode) >= 1)
                    self.check_done(requester.wait(pair.id, "send", 1), [(7, operation)])
                    # All were answered but the spoiled one.
                    requests = self.seen(there, opcode)
                    self.assertGreaterEqual(requests, 2)
                    self.ours.say("idle 50")
                    answers = sum(int(word.split("=")[1]) for word in self.ours.say(f"seen {back}").split())
                    self.assertEqual(answers, requests - 1)
                    if operation == "fetch_add":
                        self.assertEqual(responder.say("word words 0"), "1")
                    pair.close()

    def test_an_answer_with_a_wrong_icrc_is_no_answer(self):
        for role in ROLES:
            with self.subTest(role=role):
                requester, responder = self.ends(role, 4)
                there, back = self.ways(role)
                pair = Pair(requester, responder, timeout=16)
                self.ours.say(f"spoil {back} {ATOMIC_ACKNOWLEDGE} 1")
                requester.say(f"post {pair.id} fetch_add 7 target:0:8 {responder.at('words')} swap=5")
                self.check_done(requester.wait(pair.id, "send", 1), [(7, "fetch_add")])
                # Asked again, answered each time, executed once.
                self.assertGreaterEqual(self.seen(there, FETCH_ADD), 2)
                self.until(lambda: self.seen(back, ATOMIC_ACKNOWLEDGE) == self.seen(there, FETCH_ADD))
                self.assertEqual(responder.say("word words 0"), "5")
                self.assertEqual(requester.say("word target 0"), "0")
                pair.close()

    # ---- requests that come twice ----

    def test_a_repeated_request_is_answered_and_not_executed(self):
        """The very packet of the last request once more, after it was answered."""
        for role in ROLES:
            for operation, opcode, answer in (
                    ("fetch_add", FETCH_ADD, ATOMIC_ACKNOWLEDGE),
                    ("compare_swap", COMPARE_SWAP, ATOMIC_ACKNOWLEDGE),
                    ("write", WRITE_ONLY, ACKNOWLEDGE), ("send", SEND_ONLY, ACKNOWLEDGE),
                    ("read", READ_REQUEST, READ_RESPONSE_ONLY)):
                with self.subTest(role=role, operation=operation):
                    requester, responder = self.ends(role, 4)
                    there, back = self.ways(role)
                    pair = Pair(requester, responder, timeout=18)
                    responder.lines.answers([f"receive {pair.id} {i} target:{100 * i}:8" for i in (1, 2)])
                    responder.say("word words 0 40")
                    remote = {"write": ("target", 0), "read": ("source", 0)}.get(operation, ("words", 0))
                    local = "source" if operation in ("write", "send") else "target"
                    requester.say(f"post {pair.id} {operation} 7 {local}:0:8 {responder.at(*remote)}"
                                  " compare=40 swap=2")
                    self.check_done(requester.wait(pair.id, "send", 1), [(7, operation)])
                    after = {"fetch_add": "42", "compare_swap": "2"}.get(operation, "40")
                    self.assertEqual(responder.say("word words 0"), after)
                    # What the application does meanwhile must survive.
                    if operation == "write":
                        responder.say("fill target 0 8 9")
                    if operation == "compare_swap":
                        after = "40"
                        responder.say("word words 0 40")
                    answers = self.seen(back, answer)
                    for _ in range(3):
                        self.ours.say(f"repeat {there} {opcode}")
                    self.until(lambda: self.seen(back, answer) == answers + 3)
                    self.assertEqual(responder.say("word words 0"), after)
                    if operation == "write":
                        responder.say("verify target 0:8:9:0")
                    # One receive was used, if any; and the connection goes on.
                    taken = 1 if operation == "send" else 0
                    self.assertEqual(len(responder.wait(pair.id, "receive", 2, 50)), taken)
                    requester.say(f"post {pair.id} fetch_add 8 target:0:8 {responder.at('words', 8)} swap=1")
                    self.check_done(requester.wait(pair.id, "send", 1), [(8, "fetch_add")])
                    self.assertEqual(responder.say("word words 8"), "1")
                    pair.close()

    def test_a_repeated_request_does_not_stand_in_for_a_lost_answer(self):
        """The answer to a READ or atomic is lost, then the request before it comes again. Soft-RoCE takes any
        acknowledgement with the sequence number of a READ or atomic for its end, data or not: it must get none."""
        for operation, answer in (("read", READ_RESPONSE_ONLY), ("fetch_add", ATOMIC_ACKNOWLEDGE)):
            for before, opcode in (("write", WRITE_ONLY), ("send", SEND_ONLY)):
                with self.subTest(operation=operation, before=before):
                    requester, responder = self.ends("responder", 4)
                    pair = Pair(requester, responder, timeout=16)
                    responder.say(f"receive {pair.id} 1 target:0:8")
                    responder.say("word words 0 40")
                    requester.say(f"post {pair.id} {before} 1 source:0:8 {responder.at('target')}")
                    self.check_done(requester.wait(pair.id, "send", 1), [(1, before)])
                    self.ours.say(f"lose out {answer} 1")
                    remote = responder.at("words" if operation == "fetch_add" else "source")
                    requester.say(f"post {pair.id} {operation} 2 target:0:8 {remote} swap=2")
                    self.ours.say("idle 50")
                    answers = self.seen("out", ACKNOWLEDGE)
                    self.ours.say(f"repeat in {opcode}")
                    # Answered it is; only not so that it says too much.
                    self.until(lambda: self.seen("out", ACKNOWLEDGE) > answers)
                    self.check_done(requester.wait(pair.id, "send", 1), [(2, operation)])
                    if operation == "read":
                        requester.say(f"verify target 0:8:{responder.seed}:0")
                    else:
                        self.assertEqual(requester.say("word target 0"), "40")
                        self.assertEqual(responder.say("word words 0"), "42")
                    pair.close()

    # ---- a peer that is gone ----

    def test_nobody_answers(self):
        for role in ROLES:
            with self.subTest(role=role):
                requester, responder = self.ends(role, 4)
                there, _ = self.ways(role)
                pair = Pair(requester, responder, retries=3, timeout=14)
                pair.destroy(responder)
                requester.lines.answers([f"post {pair.id} write {i} source:0:8 {responder.at('target')}"
                                         for i in range(2)])
                self.assertEqual(self.statuses(requester, pair, "send", 2),
                                 ["transport retry limit exceeded", "flushed"])
                # Each of the two, the first time and three times again.
                self.assertEqual(self.seen(there, WRITE_ONLY), 8)
                self.assertEqual(requester.say(f"state {pair.id}"), "error")
                pair.destroy(requester)
