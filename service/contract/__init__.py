"""The wire contract: what goes over HTTP, as pydantic models, and the identity of a problem.

Pure: needs pydantic and the list of verdicts, nothing else, so that trainers import it without the server.
Knows nothing of how a program is run or scored. Requests refuse unknown fields; results ignore them, so that
an older client reads a newer grader.

    fields        words to choose from, and texts and numbers with their bounds
    limits        what one run may use
    checkers      what decides on an output; interactors are such programs, too
    problem_base  what problems of every kind have: tests, points, groups
    problems      each kind of problem
    identity      canonical JSON, and the id that is its hash
    requests      what is asked for
    results       what a grade came to
    runs          one program, run once: what is asked for, and what came of it
    sessions      workspaces that commands are run in
    files         files that go along with programs
    descriptions  what is told of a stored problem, and of languages
    mistakes      which field was at fault, in words of what was sent
"""

from sandbox.verdicts import FAULT_VERDICTS, Verdict
from service.contract.checkers import (
    Checker,
    ExactChecker,
    Interactor,
    KattisChecker,
    KattisInteractor,
    LcbChecker,
    LinesChecker,
    PlainChecker,
    PythonChecker,
    TestlibChecker,
    TestlibInteractor,
    TokensChecker,
)
from service.contract.descriptions import (
    LanguageRow,
    ProblemInfo,
    ProblemRef,
    TestInfo,
    describe,
)
from service.contract.fields import (
    MAX_BATCH_ITEMS,
    MAX_COMPLETION_CHARS,
    MAX_FLAGS,
    MAX_PASSES,
    MAX_PROGRAM_FILES,
    MAX_SOURCE_CHARS,
    MAX_TESTS,
    Category,
    Detail,
    Extraction,
    Kind,
    LengthUnit,
    Partial,
    Prelude,
    Reward,
    Runner,
    Scoring,
    Stop,
    SubmissionVerdict,
    Taxonomy,
    Unrun,
)
from service.contract.files import (
    FileContent,
    FilePath,
    FileResult,
    Files,
)
from service.contract.identity import (
    ProblemId,
    canonical_chunks,
    problem_id,
)
from service.contract.limits import (
    LimitOverrides,
    ProblemLimits,
)
from service.contract.mistakes import (
    MOST_TOLD,
    field_path,
    first_mistake,
    mistakes,
)
from service.contract.problem_base import (
    BaseProblem,
    BaseTest,
    PointGroup,
    input_length,
)
from service.contract.problems import (
    PROBLEMS,
    CallProblem,
    CallTest,
    InteractiveProblem,
    InteractiveTest,
    Problem,
    ScriptProblem,
    ScriptTest,
    StdioProblem,
    StdioTest,
    parse_problem,
)
from service.contract.requests import (
    BatchRequest,
    GradeOptions,
    GradeRequest,
    effective_limits,
)
from service.contract.results import (
    CompileRow,
    FitRow,
    GradeResult,
    GraderInfo,
    GroupRow,
    GrowthRow,
    LimitsRow,
    PointRow,
    TestRow,
    Timing,
)
from service.contract.runs import (
    RunLimits,
    RunRequest,
    RunResult,
    RunStatus,
)
from service.contract.sessions import (
    ExecRequest,
    ExecResult,
    FileEntry,
    FileInfo,
    FilesRequest,
    FolderContent,
    SessionGradeRequest,
    SessionInfo,
    SessionLimits,
    SessionRequest,
    TerminalEnd,
    TerminalRequest,
    WindowSize,
)

__all__ = [
    "FAULT_VERDICTS",
    "MAX_BATCH_ITEMS",
    "MAX_COMPLETION_CHARS",
    "MAX_FLAGS",
    "MAX_PASSES",
    "MAX_PROGRAM_FILES",
    "MAX_SOURCE_CHARS",
    "MAX_TESTS",
    "MOST_TOLD",
    "PROBLEMS",
    "BaseProblem",
    "BaseTest",
    "BatchRequest",
    "CallProblem",
    "CallTest",
    "Category",
    "Checker",
    "CompileRow",
    "Detail",
    "ExactChecker",
    "ExecRequest",
    "ExecResult",
    "Extraction",
    "FileContent",
    "FileEntry",
    "FileInfo",
    "FilePath",
    "FileResult",
    "Files",
    "FilesRequest",
    "FitRow",
    "FolderContent",
    "GradeOptions",
    "GradeRequest",
    "GradeResult",
    "GraderInfo",
    "GroupRow",
    "GrowthRow",
    "InteractiveProblem",
    "InteractiveTest",
    "Interactor",
    "KattisChecker",
    "KattisInteractor",
    "Kind",
    "LanguageRow",
    "LcbChecker",
    "LengthUnit",
    "LimitOverrides",
    "LimitsRow",
    "LinesChecker",
    "Partial",
    "PlainChecker",
    "PointGroup",
    "PointRow",
    "Prelude",
    "Problem",
    "ProblemId",
    "ProblemInfo",
    "ProblemLimits",
    "ProblemRef",
    "PythonChecker",
    "Reward",
    "RunLimits",
    "RunRequest",
    "RunResult",
    "RunStatus",
    "Runner",
    "Scoring",
    "ScriptProblem",
    "ScriptTest",
    "SessionGradeRequest",
    "SessionInfo",
    "SessionLimits",
    "SessionRequest",
    "StdioProblem",
    "StdioTest",
    "Stop",
    "SubmissionVerdict",
    "Taxonomy",
    "TerminalEnd",
    "TerminalRequest",
    "TestInfo",
    "TestRow",
    "TestlibChecker",
    "TestlibInteractor",
    "Timing",
    "TokensChecker",
    "Unrun",
    "Verdict",
    "WindowSize",
    "canonical_chunks",
    "describe",
    "effective_limits",
    "field_path",
    "first_mistake",
    "input_length",
    "mistakes",
    "parse_problem",
    "problem_id",
]
