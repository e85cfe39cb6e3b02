"""Nothing that was promised is lost, whatever the disk does."""

import pytest

from tests.log.histories import Mix, histories

MIXES = {
    "no errors": Mix(),
    "errors": Mix(error_rate=0.04, power=0.5),
    "errors while opening too": Mix(error_rate=0.03, errors_while_opening=True),
    "every frame synced": Mix(each_synced=True),
    "only power failures": Mix(power=1.0),
    "only kills": Mix(power=0.0, error_rate=0.03),
}


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_what_was_promised_is_there_after_every_crash(mix: Mix) -> None:
    run = list(histories(range(34), mix))
    assert sum(history.opened for history in run) > 2 * len(run), "they are opened again and again"
    assert sum(history.promised for history in run) > 5 * len(run)
    assert any(history.snapshot for history in run)


@pytest.mark.soak
@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_ten_thousand_histories(mix: Mix) -> None:
    for _ in histories(range(1_000, 2_700), mix):
        pass
