__metier_env() {
export A='it'\''s
two'
}
if (__metier_env) >/dev/null 2>&1; then __metier_env 2>/dev/null; fi
unset -f __metier_env
# The command begins below.
make
