"""The options of nvcc 13, and what each means to emucc.py; those of its own are at the end.

What only makes code for a real GPU, or makes it faster or less exact, changes no result here and is
ignored. What asks for something that there is not is refused. All else goes to the C++ compiler.
"""

from collections import namedtuple

Option = namedtuple("Option", "name has_value effect detail")
FLAG, VALUE = False, True
PTX = "the emulated GPU runs no GPU's machine code; hint: leave it out, or compile with nvcc"
MISSING = "the emulated GPU has none of it; hint: leave it out"

# Effects: "set" an attribute of the command line; "ignore"; "define" a macro; "pass" an option to
# the compiler, "each" the same for values with commas; "refuse" in words; "call" a function of the
# command line with the option and its value.
TABLE = (
    # Phases.
    ("c compile dw device-w", FLAG, "set", "only_compile"),
    ("dc device-c", FLAG, "call", "compile_relocatable"),
    ("dlink device-link", FLAG, "set", "links_device"),
    ("lib", FLAG, "set", "is_archive"),
    ("link", FLAG, "ignore", ""),
    ("run", FLAG, "set", "runs"),
    ("E preprocess M generate-dependencies MM generate-nonsystem-dependencies",
     FLAG, "call", "preprocess"),
    ("MD generate-dependencies-with-compile MMD generate-nonsystem-dependencies-with-compile "
     "MP generate-dependency-targets", FLAG, "call", "depend"),
    ("MF dependency-output MT dependency-target-name MQ", VALUE, "call", "depend"),
    ("cuda cubin fatbin ptx optix-ir ltoir", FLAG, "refuse", PTX),
    ("clean clean-targets code-ls list-gpu-code arch-ls list-gpu-arch r relocatable-link",
     FLAG, "refuse", MISSING),
    # Files and folders.
    ("o output-file", VALUE, "set", "output"),
    ("odir output-directory", VALUE, "set", "folder"),
    ("I include-path", VALUE, "each", "-I"),
    ("isystem system-include", VALUE, "each", "-isystem"),
    ("include pre-include", VALUE, "each", "-include"),
    ("D define-macro", VALUE, "each", "-D"),
    ("U undefine-macro", VALUE, "each", "-U"),
    ("iquote", VALUE, "each", "-iquote"),
    ("idirafter", VALUE, "each", "-idirafter"),
    ("L library-path", VALUE, "call", "search"),
    ("l library", VALUE, "call", "link"),
    ("x", VALUE, "set", "language"),
    ("ccbin compiler-bindir", VALUE, "set", "cxx"),
    ("optf options-file", VALUE, "call", "read_options"),
    ("run-args", VALUE, "call", "argue"),
    ("arbin archiver-binary ldir libdevice-directory target-dir target-directory keep-dir "
     "idp input-drive-prefix ddp dependency-drive-prefix dp drive-prefix time "
     "fdevice-time-trace", VALUE, "ignore", ""),
    ("objtemp objdir-as-tempdir save-temps use-local-env force-cl-env-setup", FLAG, "ignore", ""),
    # The language.
    ("std", VALUE, "pass", "-std=%s"),
    ("extended-lambda expt-extended-lambda", FLAG, "define", "__CUDACC_EXTENDED_LAMBDA__"),
    ("expt-relaxed-constexpr", FLAG, "define", "__CUDACC_RELAXED_CONSTEXPR__"),
    ("noeh no-exceptions", FLAG, "pass", "-fno-exceptions"),
    ("ftemplate-depth", VALUE, "pass", "-ftemplate-depth=%s"),
    ("ftemplate-backtrace-limit", VALUE, "pass", "-ftemplate-backtrace-limit=%s"),
    ("nohdinitlist no-host-device-initializer-list nohdmoveforward "
     "no-host-device-move-forward no-align-double", FLAG, "ignore", ""),
    # Of the host's compiler and linker.
    ("O optimize", VALUE, "pass", "-O%s"),
    ("g debug", FLAG, "pass", "-g"),
    ("pg profile", FLAG, "pass", "-pg"),
    ("w disable-warnings", FLAG, "pass", "-w"),
    ("m machine", VALUE, "ignore", ""),
    ("m64", FLAG, "ignore", ""),
    ("shared", FLAG, "set", "is_shared"),
    ("Xcompiler compiler-options", VALUE, "call", "to_compiler"),
    ("Xlinker linker-options", VALUE, "call", "to_linker"),
    ("frandom-seed", VALUE, "pass", "-frandom-seed=%s"),
    ("Xarchive archive-options hls host-linker-script cudart cudadevrt", VALUE, "ignore", ""),
    ("aug-hls augment-host-linker-script forward-unknown-to-host-compiler noprof "
     "forward-unknown-to-host-linker forward-unknown-opts dont-use-profile "
     "allow-unsupported-compiler jobserver", FLAG, "ignore", ""),
    # How code for a real GPU is made. `arch` may be any: __CUDA_ARCH__ is 900.
    ("arch gpu-architecture code gpu-code gencode generate-code Xptxas ptxas-options Xnvlink "
     "nvlink-options maxrregcount t threads split-compile split-compile-extended e entries "
     "opt-info optimization-info Ofc Ofast-compile dopt jtd jump-table-density compress-mode "
     "qpp-config static-global-template-stub device-entity-has-hidden-visibility "
     "device-stack-protector Xcudafe Xfatbin", VALUE, "ignore", ""),
    ("rdc relocatable-device-code", VALUE, "call", "relocate"),
    ("G device-debug", FLAG, "define", "__CUDACC_DEBUG__"),
    ("lineinfo generate-line-info dlto dlink-time-opt lto gen-opt-lto restrict nodlink "
     "no-device-link extra-device-vectorization keep-device-functions src-in-ptx source-in-ptx "
     "res-usage resource-usage ewp extensible-whole-program no-compress reloc-ptx "
     "relocatable-ptx astoolspatch compile-as-tools-patch fdevice-syntax-only", FLAG, "ignore", ""),
    # They let a result be less exact: here it is as exact as without them.
    ("ftz prec-div prec-sqrt fmad", VALUE, "ignore", ""),
    ("use_fast_math", FLAG, "ignore", ""),
    # Copies and kernels are done when the call returns, whatever the stream.
    ("default-stream", VALUE, "call", "default_stream"),
    # Warnings, of which there are others here.
    ("Wreorder", FLAG, "pass", "-Wreorder"),
    ("Wno-deprecated-declarations", FLAG, "pass", "-Wno-deprecated-declarations"),
    ("Wdefault-stream-launch Wmissing-launch-bounds Wext-lambda-captures-this "
     "Wno-deprecated-gpu-targets err-no display-error-number no-err-no "
     "no-display-error-number", FLAG, "ignore", ""),
    ("Werror", VALUE, "call", "make_errors"),
    ("diag-error diag-suppress diag-warn brief-diag brief-diagnostics", VALUE, "ignore", ""),
    ("sanitize", VALUE, "refuse", MISSING),
    # What is told.
    ("v verbose dryrun", FLAG, "set", "is_verbose"),
    ("h help V version", FLAG, "call", "tell"),
    # emucc.py's own; nvcc, too, has `keep`.
    ("keep", FLAG, "set", "keep"),
    ("explain", FLAG, "set", "explain"),
    ("precompile", FLAG, "set", "precompiles"),
    ("prelude", VALUE, "set", "prelude"),
    ("checked count no-loops", FLAG, "call", "run_as"),
)  # fmt: skip
OPTIONS = {name: Option(name, *row[1:]) for row in TABLE for name in row[0].split()}
# Options whose value may touch them, as -Idir.
TOUCHING = "IDULlOxt"
# Kinds of warnings that nvcc's -Werror makes errors of, and what does the same with g++.
WARNINGS = {
    "all-warnings": None, "cross-execution-space-call": None, "default-stream-launch": None,
    "deprecated-declarations": "-Werror=deprecated-declarations", "missing-launch-bounds": None,
    "ext-lambda-captures-this": None, "reorder": "-Werror=reorder",
}  # fmt: skip


def find(word):
    """(option, value or None) for a word of the command line; (None, None) if nvcc has no such."""
    name, equals, value = word.lstrip("-").partition("=")
    option = OPTIONS.get(name)
    if option is not None and (option.has_value or not equals):
        return option, value if equals else None
    if word[1] in TOUCHING and (word[1] != "t" or word[2:].isdigit()):
        return OPTIONS[word[1]], word[2:]
    return None, None
