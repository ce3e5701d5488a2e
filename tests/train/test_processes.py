"""Values of all processes: of the only one here; several are tested by launching them (test_several_processes.py)."""

from t2t.train import processes


def test_one_process_is_the_first_and_gathers_its_own_value():
    assert processes.is_first()
    assert processes.gather_json({"positions": [3, -1]}) == [{"positions": [3, -1]}]
