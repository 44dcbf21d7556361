"""What has to work: every operation, both services, both roles, and whatever the weather."""

import socket

from rxe_ends import Case, COMPLETED, Pair, RECEIVED, SENDING, immediate, sizes, world


class Verbs(Case):
    def converse(self, requester, responder, mtu, lengths, both=False, **attributes):
        """Every operation with every length, all under way at once; every byte of both ends checked.
        both: the other end does the same at the same time, on the same queue pairs."""
        pair = Pair(requester, responder, mtu=mtu, **attributes)
        messages, at = [], 3
        for length in lengths:
            for operation in (*SENDING, "read"):
                messages.append((operation, length, at))
                at += length + 13
        wanted = [(n, m) for n, m in enumerate(messages) if m[0] in RECEIVED]
        directions = [(requester, responder)] + [(responder, requester)] * both
        for _, receiver in directions:
            receiver.lines.answers([f"receive {pair.id} {n} target:{place}:{length}"
                                    for n, (_, length, place) in wanted])
        for sender, receiver in directions:
            posts = []
            for number, (operation, length, place) in enumerate(messages):
                local, remote = ("target", "source") if operation == "read" else ("source", "target")
                posts.append(f"post {pair.id} {operation} {number} {local}:{place}:{length}"
                             f" {receiver.at(remote, place)} imm={immediate(number)}")
            sender.lines.answers(posts)
        for sender, receiver in directions:
            self.check_done(sender.wait(pair.id, "send", len(messages)),
                            [(n, COMPLETED[m[0]]) for n, m in enumerate(messages)])
            taken = receiver.wait(pair.id, "receive", len(wanted))
            self.check_done(taken, [(n, RECEIVED[m[0]]) for n, m in wanted])
            for completion, (number, (operation, length, _)) in zip(taken, wanted):
                self.assertEqual(completion.bytes, length, operation)
                self.assertEqual(completion.immediate,
                                 immediate(number) if operation.endswith("_imm") else None, operation)
        for end, other in ((requester, responder), (responder, requester)):
            # What it read, and what the other sent or wrote; nothing else.
            reads, rest = both or end is requester, both or end is responder
            end.say("verify target " + " ".join(
                f"{place}:{length}:{other.seed}:{place}" for operation, length, place in messages
                if length > 0 and (reads if operation == "read" else rest)))
        pair.close()

    def test_reliable(self):
        for family in (4, 6):
            for role in ("requester", "responder"):
                for mtu in (1024, 4096):
                    with self.subTest(family=family, role=role, mtu=mtu):
                        requester, responder = self.ends(role, family)
                        self.converse(requester, responder, mtu, sizes(mtu))
                        self.ours.say("whole")

    def test_weather(self):
        """Loss, repetition, reordering and damage, of what we send or of what we receive, or of both."""
        mtu = 1024
        counted_as = {"drop": "lost", "duplicate": "doubled", "reorder": "delayed", "corrupt": "damaged"}
        for seed in range(7, 7 + world.seeds):
            for role in ("requester", "responder"):
                for ways in (("in",), ("out",), ("in", "out")):
                    # There are fewer answers than requests.
                    answers = ways == (self.ways(role)[1],)
                    for weather in (("drop=0.15" if answers else "drop=0.04",), ("duplicate=0.2",), ("reorder=0.1",),
                                    ("corrupt=0.15" if answers else "corrupt=0.04",),
                                    ("drop=0.03", "duplicate=0.05", "reorder=0.05", "corrupt=0.02")):
                        with self.subTest(role=role, ways=ways, weather=weather, seed=seed):
                            requester, responder = self.ends(role, 4, seed)
                            for way in ways:
                                self.ours.say(f"weather {way} {' '.join(weather)}")
                            wanted = {f"{way}_{counted_as[kind.split('=')[0]]}" for way in ways for kind in weather}
                            # Until each kind has happened; how many packets there are is a matter of time.
                            for _ in range(8):
                                self.converse(requester, responder, mtu, (0, 1, mtu, mtu + 1, 5000, 20000))
                                counted = self.counters()
                                if all(counted[name] > 0 for name in wanted):
                                    break
                                self.clear()
                            for name in wanted:
                                self.assertGreater(counted[name], 0, name)
                            for way in ways:
                                self.ours.say(f"weather {way}")
                            self.ours.say("whole")

    def test_our_own_packets_do_not_disturb(self):
        """Soft-RoCE knows no HELLO, hears no mark and no CNP; none of them may cost anything."""
        for role in ("requester", "responder"):
            for way in ("in", "out"):
                with self.subTest(role=role, way=way):
                    requester, responder = self.ends(role, 4)
                    self.ours.say(f"weather {way} mark=0.5")
                    self.converse(requester, responder, 1024, (1, 5000, 20000), ecn=1, timeout=18)
                    counted = self.counters()
                    self.assertGreater(counted[f"{way}_marked"], 0)
                    self.assertEqual(counted.get("cnps_sent", 0) > 0, way == "in")
                    self.assertEqual(counted.get("cnps_received", 0), 0)
                    self.assertGreater(counted["hellos_sent"], 0)
                    self.assertEqual(counted.get("hellos_received", 0), 0)
                    self.assertEqual(counted.get("retransmitted_packets", 0), 0)
                    self.assertEqual(counted.get("duplicates", 0), 0)

    def test_both_ends_at_once(self):
        for seed in range(11, 11 + world.seeds):
            for weather in ("", "drop=0.03 duplicate=0.05 reorder=0.05"):
                for mtu in (1024, 4096):
                    with self.subTest(weather=weather, mtu=mtu, seed=seed):
                        requester, responder = self.ends("requester", 6, seed)
                        for way in ("in", "out"):
                            self.ours.say(f"weather {way} {weather}")
                        self.converse(requester, responder, mtu, sizes(mtu), both=True)

    def test_one_read_or_atomic_at_a_time(self):
        """The depth that both ends agreed on is kept to."""
        for role in ("requester", "responder"):
            with self.subTest(role=role):
                requester, responder = self.ends(role, 4)
                self.converse(requester, responder, 1024, (1, 5000, 20000), depth=1)
                self.atomics(requester, responder, 20, depth=1)

    def atomics(self, requester, responder, count, **attributes):
        """Additions and swaps on one word; what each finds there says that each ran once, in order."""
        pair = Pair(requester, responder, **attributes)
        requester.region("found", 8 * 128, "local")
        add, first = 0x1_0000_0001, 0xFFFF_FFFF_FFFF_0000
        responder.say(f"word words 8 {first}")
        value, expected, posts, operations = first, [], [], []
        for i in range(count):
            expected.append(value)
            if i % 3 == 2:
                # Every other one compares with something else, and changes nothing.
                compare, swap = (value, 0x0123_4567_89AB_CDEF ^ i) if i % 2 == 0 else (value ^ 1, 99)
                posts.append(f"post {pair.id} compare_swap {i} found:{8 * i}:8 {responder.at('words', 8)}"
                             f" compare={compare} swap={swap}")
                operations.append((i, "compare_swap"))
                value = swap if compare == value else value
            else:
                posts.append(f"post {pair.id} fetch_add {i} found:{8 * i}:8 {responder.at('words', 8)}"
                             f" swap={add + i}")
                operations.append((i, "fetch_add"))
                value = (value + add + i) % 2**64
        requester.lines.answers(posts)
        self.check_done(requester.wait(pair.id, "send", count), operations)
        found = [int(text) for text, _ in requester.lines.answers(
            [f"word found {8 * i}" for i in range(count)])]
        self.assertEqual(found, expected)
        self.assertEqual(int(responder.say("word words 8")), value)
        # Nothing beside it.
        self.assertEqual(responder.say("word words 0"), "0")
        self.assertEqual(responder.say("word words 16"), "0")
        pair.close()

    def test_atomics(self):
        for family in (4, 6):
            for role in ("requester", "responder"):
                with self.subTest(family=family, role=role):
                    self.atomics(*self.ends(role, family), 40)
        for role in ("requester", "responder"):
            for way in ("in", "out"):
                with self.subTest(role=role, way=way):
                    requester, responder = self.ends(role, 4, seed=3)
                    self.ours.say(f"weather {way} drop=0.1 duplicate=0.2 reorder=0.1")
                    self.atomics(requester, responder, 60)
                    counted = self.counters()
                    self.assertGreater(counted[f"{way}_lost"], 0)
                    self.assertGreater(counted[f"{way}_doubled"], 0)

    def datagrams(self, sender, receiver, family, mtu):
        qkey = 0x1234567
        pair = Pair(sender, receiver, kind="ud", qkey=qkey, mtu=mtu)
        lengths = [n for n in sizes(mtu) if n <= mtu]
        messages = [(operation, n) for n in lengths for operation in ("send", "send_imm")]
        places, at = [], 3
        for _, length in messages:
            places.append(at)
            at += length + 40 + 13
        receiver.lines.answers([f"receive {pair.id} {i} target:{places[i]}:{40 + n}"
                                for i, (_, n) in enumerate(messages)])
        sender.lines.answers([
            f"post {pair.id} {operation} {i} source:{i}:{n} imm={immediate(i)} ip={receiver.ip}"
            f" qpn={pair.qpn[receiver]} qkey={qkey}" for i, (operation, n) in enumerate(messages)])
        self.check_done(sender.wait(pair.id, "send", len(messages)),
                        [(i, "send") for i in range(len(messages))])
        taken = receiver.wait(pair.id, "receive", len(messages))
        self.check_done(taken, [(i, "receive") for i in range(len(messages))])
        for i, (completion, (operation, length)) in enumerate(zip(taken, messages)):
            self.assertEqual(completion.bytes, 40 + length)
            self.assertEqual(completion.immediate, immediate(i) if operation == "send_imm" else None)
            self.assertEqual(completion.source, pair.qpn[sender])
            self.assertTrue(completion.grh)
            # The IP header in front names both ends (annex A17.4.5.1).
            header = bytes.fromhex(receiver.say(f"bytes target {places[i]} 40"))
            width = 4 if family == 4 else 16
            kind = socket.AF_INET if family == 4 else socket.AF_INET6
            self.assertEqual(header[40 - width:], socket.inet_pton(kind, receiver.ip)[-width:])
            source = header[-2 * width:-width] if family == 4 else header[8:24]
            self.assertEqual(source, socket.inet_pton(kind, sender.ip))
        receiver.lines.answers([f"fill target {place} 40 0" for place in places])
        receiver.say("verify target " + " ".join(
            f"{places[i] + 40}:{n}:{sender.seed}:{i}" for i, (_, n) in enumerate(messages) if n))
        # A wrong key never delivers (vol. 1, 9.6.1.4): not even the receive is used up.
        receiver.say(f"receive {pair.id} 100 target:0:200")
        sender.lines.answers([f"post {pair.id} send {i} source:{i}:8 ip={receiver.ip}"
                              f" qpn={pair.qpn[receiver]} qkey={qkey + (i == 101)}" for i in (101, 102)])
        sender.wait(pair.id, "send", 2)
        self.check_done(receiver.wait(pair.id, "receive", 1), [(100, "receive")])
        self.assertEqual(receiver.wait(pair.id, "receive", 1, 100), [])
        receiver.say("fill target 0 200 0")
        pair.close()

    def test_datagrams(self):
        for family in (4, 6):
            for role in ("requester", "responder"):
                for mtu in (1024, 4096):
                    with self.subTest(family=family, role=role, mtu=mtu):
                        self.datagrams(*self.ends(role, family), family, mtu)
