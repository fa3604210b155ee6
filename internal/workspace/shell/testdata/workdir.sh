cd -- '/w/work/a' 2>/dev/null || { printf '%s\n' 'workdir: this folder cannot be entered. Name a folder of the workspace that exists, or leave workdir out.' >&2; exit 1; }
__metier_end() {
case "${__metier_status-}" in '') ;; *) return 0 ;; esac
__metier_status=$1
(
unset -f unset umask export printf pwd
umask 077
export -p
printf '\n%s' '# metier: directory
'
pwd -P
printf %s '# metier: end
'
) >|'/w/state/shell/kept-x' 2>/dev/null || :
}
trap '{ __metier_end "$?"; } 2>/dev/null' EXIT
# The command begins below.
make
