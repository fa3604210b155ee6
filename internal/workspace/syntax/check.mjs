// Says of files whether they parse as JavaScript or TypeScript. Arguments: the directory
// that they are in and their names, whose endings say what they are. It compiles and
// never runs them. Each line of its output is one verdict: number, "ok", or number, line,
// column, message.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import * as nodeModule from 'node:module'
import vm from 'node:vm'

const [folder, ...names] = process.argv.slice(1)
const write = (text) => fs.writeSync(1, text + '\n')
const parameters = ['exports', 'require', 'module', '__filename', '__dirname']
// What only a module may hold tells which of two errors is meant.
const moduleWords = /^\s*(?:import\s*[\w{*'"]|export\s*[\w{*])/m

const script = (source) => {
  vm.compileFunction(source, parameters, { filename: 'file' })
}
const module = (source) => {
  new vm.SourceTextModule(source, { identifier: 'file' })
}

// where is the place of an error as its stack tells it: a line with the number, the text,
// and a mark below.
function where(text) {
  const m = /^[^\n]*?:(\d+)\n(?:[^\n]*\n)*?([ \t]*)\^+[ \t]*\n/.exec(text)
  return m ? [Number(m[1]), m[2].length + 1] : [0, 0]
}

function tell(n, error, place) {
  const message = String(error.message).replace(/\s+/g, ' ').slice(0, 200)
  write(`${n} ${place[0]} ${place[1]} SyntaxError: ${message}`)
}

// A module's error does not say where; node does when it is asked to check the file.
function placeOfModule(error, file) {
  const place = where(String(error.stack))
  if (place[0] > 0) return place
  const asked = spawnSync(process.execPath, ['--no-warnings', '--check', file], { encoding: 'utf8', timeout: 5000, maxBuffer: 1 << 20 })
  return where(String(asked.stderr))
}

function attempt(parse, source) {
  try {
    parse(source)
    return undefined
  } catch (error) {
    return error
  }
}

function check(n, name) {
  const file = folder + '/' + name
  const copy = file.replace(/\.\w+$/, '.mjs')
  let source = fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
  if (/\.[cm]?ts$/.test(name)) {
    const strip = nodeModule.stripTypeScriptTypes ?? nodeModule.default.stripTypeScriptTypes
    if (strip === undefined) return
    const error = attempt((text) => (source = strip(text)), source)
    if (error !== undefined) {
      if (error.code === 'ERR_INVALID_TYPESCRIPT_SYNTAX') tell(n, error, where(String(error.stack)))
      return
    }
  }
  const asScript = /\.m[jt]s$/.test(name) ? undefined : attempt(script, source)
  if (/\.c[jt]s$/.test(name) || (asScript === undefined && !/\.m[jt]s$/.test(name))) {
    if (asScript === undefined) return write(`${n} ok`)
    return asScript instanceof SyntaxError ? tell(n, asScript, where(String(asScript.stack))) : undefined
  }
  const asModule = attempt(module, source)
  if (asModule === undefined) return write(`${n} ok`)
  if (!(asModule instanceof SyntaxError)) return
  if (asScript !== undefined && !moduleWords.test(source)) return tell(n, asScript, where(String(asScript.stack)))
  if (copy !== file) fs.writeFileSync(copy, source)
  tell(n, asModule, placeOfModule(asModule, copy))
}

write('node ' + process.versions.node)
names.forEach((name, n) => {
  try {
    check(n, name)
  } catch {
    // No verdict.
  }
})
