"""Which errors in the app's log fail the tests of the browser."""

from __future__ import annotations

import pytest

from tests.browser.conftest import without_unseen

pytestmark = pytest.mark.quick

BEGIN = """2026-11-26 10:00:00.000 Uncaught app execution
Traceback (most recent call last):
  File "streamlit/runtime/scriptrunner/exec_code.py", line 136, in exec_func_with_error_handling
    result = func()
             ^^^^^^
"""
DRAWING = """  File "streamlit/elements/widgets/selectbox.py", line 804, in _selectbox
    session_state = get_session_state().filtered_state
                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "streamlit/runtime/state/safe_session_state.py", line 118, in filtered_state
    return self._state.filtered_state
           ^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "streamlit/runtime/state/session_state.py", line 741, in <setcomp>
    old_keys = {self._get_widget_id(k) for k in self._old_state}
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
FINISHED = """Exception in thread ScriptRunner.scriptThread:
Traceback (most recent call last):
  File "streamlit/runtime/state/safe_session_state.py", line 89, in on_script_finished
    self._state.on_script_finished(
  File "streamlit/runtime/state/session_state.py", line 222, in __iter__
    yield from self.states
"""
OWN = """  File "bandits_app/runs/run_lists.py", line 170, in rows_of
    for key in found:
"""
CHANGED = "RuntimeError: dictionary changed size during iteration\n"


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (BEGIN + DRAWING + CHANGED, False),
        (FINISHED + CHANGED, False),
        (BEGIN + OWN + CHANGED, True),
        (BEGIN + DRAWING + OWN + CHANGED, True),
        (BEGIN + DRAWING + "KeyError: 'job'\n", True),
        (BEGIN + DRAWING + CHANGED + BEGIN + OWN + CHANGED, True),
        (BEGIN + OWN + "KeyError: 'job'\n" + BEGIN + DRAWING + CHANGED, True),
    ],
)
def test_only_an_interrupted_run_may_fail_unseen(error: str, seen: bool) -> None:
    log = f"Started.\n{error}Stopping...\n"
    left = without_unseen(log)
    assert ("Traceback" in left) is seen
    assert left.endswith("Stopping...\n")
