"""The table of faults tried and survived is what the tests' names say."""

from faults import PAGE, page


def test_the_page_of_faults_names_the_tests_that_there_are() -> None:
    assert PAGE.read_text() == page(), "run python tests/faults.py"
