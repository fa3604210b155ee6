// Prints what a library has in place of a name that was asked for and is not there.
// Arguments: form, path of names, name, seconds, how, modules. It writes names only,
// after a mark, and nothing at all when it finds nothing.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

const [form, at, name, seconds, how, ...modules] = process.argv.slice(1)
const NAMES = 80
const NEAR = 5
const DEPTH = 400

setTimeout(() => process.exit(0), Number(seconds) * 1000).unref()
process.on('uncaughtException', () => process.exit(0))
process.on('unhandledRejection', () => process.exit(0))
const write = (text) => fs.writeSync(1, text)
process.stdout.write = process.stderr.write = () => true
for (const key of ['log', 'info', 'warn', 'error', 'debug']) console[key] = () => {}

const require = createRequire(path.join(process.cwd(), 'probe.js'))
const isObject = (x) => x !== null && (typeof x === 'object' || typeof x === 'function')

async function load(module) {
  try {
    return await import(module)
  } catch {
    try {
      return require(module)
    } catch {
      return undefined
    }
  }
}

function get(object, key) {
  try {
    return isObject(object) ? object[key] : undefined
  } catch {
    return undefined
  }
}

// namesOf lists what an object has, what its class gives it included.
function namesOf(object, own) {
  const names = new Set()
  for (let o = object; isObject(o) && o !== Object.prototype && o !== Function.prototype; o = own ? null : Object.getPrototypeOf(o)) {
    for (const key of Object.getOwnPropertyNames(o)) {
      if (key !== 'constructor' && !(typeof object === 'function' && ['length', 'name', 'prototype', 'arguments', 'caller'].includes(key))) names.add(key)
    }
  }
  return names
}

// walk follows a path of names, through the default export where that has them.
function walk(module, keys) {
  let object = module
  for (const key of keys) {
    const next = get(object, key)
    object = next === undefined ? get(get(object, 'default'), key) : next
  }
  return object
}

function edits(a, b) {
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const now = [i]
    for (let j = 1; j <= b.length; j++) {
      now[j] = Math.min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1))
    }
    last = now
  }
  return last[b.length]
}

function nearest(names) {
  const wanted = name.toLowerCase().slice(0, 80)
  const scored = []
  for (const n of names) {
    const other = n.toLowerCase().slice(0, 80)
    const distance = edits(wanted, other)
    const within = other.length > 3 && (other.includes(wanted) || wanted.includes(other))
    if (distance <= Math.max(2, wanted.length / 3) || within) scored.push([distance, n])
  }
  return scored.sort((a, b) => a[0] - b[0]).slice(0, NEAR).map((s) => s[1])
}

function print(what, all) {
  const names = [...all].filter((n) => !n.startsWith('_') && n !== 'default' && n !== 'module.exports').sort()
  if (names.length === 0 || names.includes(name)) return
  const near = nearest(names)
  let text = '\nmetier-probe 1\nwhat ' + what + '\n'
  if (near.length > 0) text += 'near ' + near.join(' ') + '\n'
  text += 'has ' + names.slice(0, NAMES).join(' ') + '\n'
  if (names.length > NAMES) text += 'more ' + (names.length - NAMES) + '\n'
  write(text)
}

// search looks through the classes of modules for a name that is close.
function search(loaded) {
  const seen = new Set()
  const queue = [...loaded]
  while (queue.length > 0 && seen.size < DEPTH) {
    const object = queue.shift()
    if (!isObject(object) || seen.has(object)) continue
    seen.add(object)
    const prototype = typeof object === 'function' ? get(object, 'prototype') : undefined
    if (isObject(prototype)) {
      const names = namesOf(prototype)
      if (!names.has(name) && nearest(names).length > 0) return print('class ' + (object.name || 'it'), names)
    }
    for (const key of namesOf(object, true)) queue.push(get(object, key))
  }
}

function subpaths(module) {
  for (let dir = process.cwd(); ; dir = path.dirname(dir)) {
    const file = path.join(dir, 'node_modules', module, 'package.json')
    if (fs.existsSync(file)) {
      const exported = JSON.parse(fs.readFileSync(file, 'utf8')).exports
      if (!isObject(exported)) return
      return print('package ' + module, Object.keys(exported).filter((k) => k.startsWith('./')).map((k) => k.slice(2)))
    }
    if (dir === path.dirname(dir)) return
  }
}

if (form === 'subpath') {
  subpaths(modules[0])
} else if (how === 'search') {
  search((await Promise.all(modules.map(load))).filter(isObject))
} else {
  const keys = at === '' ? [] : at.split('.')
  const module = await load(modules[0])
  let object = walk(module, keys)
  if (how === 'made') {
    // A default import may be the class itself.
    if (typeof object !== 'function') object = get(object, 'default')
    object = get(object, 'prototype')
    if (isObject(object)) print('class ' + (get(object.constructor, 'name') || 'it'), namesOf(object))
  } else if (isObject(object)) {
    const names = namesOf(object)
    const inner = keys.length === 0 ? get(object, 'default') : undefined
    if (isObject(inner)) for (const n of namesOf(inner)) names.add(n)
    print((keys.length === 0 ? 'module ' : 'object ') + (keys.at(-1) ?? modules[0]), names)
  }
}
process.exit(0)
