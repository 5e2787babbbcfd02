# Environments of Python, sourced by those who make one.

# Makes an environment in the folder $2 and installs into it what follows, as `pip install` takes it, within $1 seconds.
# Python installs a pip of its own into each environment, and compiles it, which takes it longer than to install the
# rest. So the pip of the first environment of a run, .build/proxies, installs into the others. It can from 22.3 on.
# What is installed has to name setuptools if it needs that: Python 3.11 would bring it with pip. `pip` is set to the
# words that call the environment's.
make_environment() {
    local seconds=$1 folder=$2 lender lends
    shift 2
    lender=$(dirname -- "${BASH_SOURCE[0]}")/../.build/proxies/bin/python
    lends='import pip; v = pip.__version__.split("."); raise SystemExit((int(v[0]), int(v[1])) < (22, 3))'
    if [[ -x $lender ]] && "$lender" -c "$lends" 2> /dev/null; then
        python3 -m venv --without-pip "$folder" || return 1
        pip=("$lender" -m pip --python "$folder/bin/python")
    else
        python3 -m venv "$folder" || return 1
        pip=("$folder/bin/python" -m pip)
    fi
    timeout "$seconds" "${pip[@]}" install --no-compile --quiet --disable-pip-version-check "$@"
}
