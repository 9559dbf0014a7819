"""One clock for many: each is looked at, whatever the others do."""

import asyncio
from collections.abc import Callable

from cheapgpu.wire.sweeper import Sweeper
from tests.wire.conftest import Run
from tests.wire.peers import until


class Member:
    """Counts the looks at it, and does something at each."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.seen: list[float] = []
        self._act = act

    def sweep(self, now: float) -> None:
        """Look at the clock."""
        self.seen.append(now)
        self._act()


def fail() -> None:
    """Fail."""
    raise RuntimeError("a fault")


def test_every_member_is_looked_at_again_and_again(run: Run) -> None:
    """All members get the loop's time, the same in one look, until the sweeper is stopped."""

    async def main() -> tuple[list[float], list[float]]:
        sweeper = Sweeper(0.001)
        one, two = Member(), Member()
        sweeper.add(one)
        sweeper.add(two)
        sweeper.add(two)
        assert len(sweeper) == 2
        began = asyncio.get_running_loop().time()
        sweeper.start()
        await until(lambda: len(one.seen) >= 3)
        sweeper.stop()
        sweeper.stop()
        seen = list(one.seen)
        await asyncio.sleep(0.02)
        assert one.seen == seen
        assert seen[0] >= began
        return one.seen, two.seen

    one, two = run(main())
    assert one == two == sorted(one)


def test_a_member_that_raises_stops_no_other(run: Run) -> None:
    """A fault is reported by the member's name, each time, and the others are looked at."""

    async def main() -> None:
        sweeper = Sweeper(0.001)
        members = [Member(), Member(fail), Member()]
        for member in members:
            sweeper.add(member)
        sweeper.start()
        await until(lambda: all(len(member.seen) >= 3 for member in members))
        sweeper.stop()

    run(main())
    assert len(run.reports) >= 3
    assert {report["message"].partition(" at ")[0] for report in run.reports} == {
        "Member.sweep failed: RuntimeError"
    }
    run.reports.clear()


def test_members_come_and_go_during_a_look(run: Run) -> None:
    """One that is let go during a look is not looked at any more; one that comes is, next time."""

    async def main() -> tuple[int, int]:
        sweeper = Sweeper(0.001)
        newcomer = Member()
        rivals: list[Member] = []

        def only_one() -> None:
            for rival in rivals:
                sweeper.discard(rival)
            sweeper.add(newcomer)

        # Whichever is looked at first lets the other go, and itself.
        rivals += [Member(only_one), Member(only_one)]
        for rival in rivals:
            sweeper.add(rival)
        sweeper.start()
        await until(lambda: len(newcomer.seen) >= 2)
        sweeper.stop()
        assert not {*newcomer.seen} & {*rivals[0].seen, *rivals[1].seen}
        return sum(len(rival.seen) for rival in rivals), len(sweeper)

    assert run(main()) == (1, 1)


def test_a_member_can_stop_the_sweeper(run: Run) -> None:
    """Stopped during a look, it looks no more."""

    async def main() -> int:
        sweeper = Sweeper(0.001)
        member = Member(sweeper.stop)
        sweeper.add(member)
        sweeper.start()
        await until(lambda: member.seen)
        await asyncio.sleep(0.02)
        return len(member.seen)

    assert run(main()) == 1


def test_it_can_be_started_again(run: Run) -> None:
    """A second start does not make it look twice, and a stop can be followed by a start."""

    async def main() -> bool:
        sweeper = Sweeper(0.001)
        member = Member()
        sweeper.add(member)
        sweeper.start()
        sweeper.start()
        sweeper.stop()
        await asyncio.sleep(0.02)
        assert member.seen == []
        sweeper.start()
        await until(lambda: member.seen)
        sweeper.stop()
        return True

    assert run(main())
