$ProgressPreference = 'SilentlyContinue'
[Console]::OutputEncoding = $OutputEncoding = New-Object Text.UTF8Encoding $false
try { Set-Location -LiteralPath '/w/work/a' -ErrorAction Stop } catch { [Console]::Error.WriteLine('workdir: this folder cannot be entered. Name a folder of the workspace that exists, or leave workdir out.'); exit 1 }
$global:LASTEXITCODE = 0
try {
# The command begins below.
make
$__metier_ok = $?
} finally {
}
if ($__metier_ok) { exit 0 }
if ($LASTEXITCODE) { exit $LASTEXITCODE }
exit 1
