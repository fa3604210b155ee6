$ProgressPreference = 'SilentlyContinue'
[Console]::OutputEncoding = $OutputEncoding = New-Object Text.UTF8Encoding $false
$global:LASTEXITCODE = 0
try {
# The command begins below.
make
$__metier_ok = $?
} finally {
try {
$__metier_kept = @([Environment]::GetEnvironmentVariables().GetEnumerator() | Where-Object { $_.Key -match '^[A-Za-z_][A-Za-z0-9_]*$' } |
ForEach-Object { 'export ' + $_.Key + "='" + ([string]$_.Value).Replace("'", "'\''") + "'" })
$__metier_kept += @('# metier: directory', (Get-Location -PSProvider FileSystem).ProviderPath, '# metier: end
')
[IO.File]::WriteAllText('/w/state/shell/kept-x', ($__metier_kept -join "`n"), (New-Object Text.UTF8Encoding $false))
} catch { }
}
if ($__metier_ok) { exit 0 }
if ($LASTEXITCODE) { exit $LASTEXITCODE }
exit 1
