package skill

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/journal"
	"github.com/metier-run/metier/internal/sandbox"
)

// moduleFinder has Node's import look where its require does: in NODE_PATH, once the
// script's own surroundings have nothing. Import alone looks only beside and above the
// file that imports, and that is the skill, where nothing can be installed. It is what
// the link in the work folder is to the model's own code (B1 8.7).
const moduleFinder = `import path from 'node:path';
import { pathToFileURL } from 'node:url';
const places = (process.env.NODE_PATH ?? '').split(path.delimiter).filter((dir) => path.basename(dir) === 'node_modules')
  .map((dir) => pathToFileURL(path.join(path.dirname(dir), 'x.mjs')).href);
export async function resolve(name, context, next) {
  try {
    return await next(name, context);
  } catch (missing) {
    if (missing?.code !== 'ERR_MODULE_NOT_FOUND' || /^[./]|^[a-z]+:/i.test(name)) throw missing;
    for (const parentURL of places) {
      try {
        return await next(name, { ...context, parentURL });
      } catch (error) {
        if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
      }
    }
    throw missing;
  }
}
`

// moduleURL is a module of Node as a URL.
func moduleURL(text string) string { return "data:text/javascript," + url.PathEscape(text) }

// badOption is what a Node says that cannot be given a finder: those before 19.
const badOption = "bad option: --import"

// attempt launches the script at a place of the workspace.
func (w *work) attempt(ctx context.Context, at site, limit time.Duration) (sandbox.Result, *journal.Result, error) {
	l := w.launch(at, limit)
	if _, has := w.place.Workspace.Packages(interpreter.Node); !has || w.with.Kind != interpreter.Node {
		return w.start(ctx, w.script, l, w.env)
	}
	led := l
	led.Argv = slices.Insert(slices.Clone(l.Argv), 1, "--import", moduleURL("import { register } from 'node:module'; register?.("+jsonString(moduleURL(moduleFinder))+");"))
	ended, refused, err := w.start(ctx, w.script, led, w.env)
	if err == nil && refused == nil && !ended.OK() && ended.Stdout.Total == 0 && bytes.Contains(ended.Stderr.Head, []byte(badOption)) {
		return w.start(ctx, w.script, l, w.env) // nothing of the script ran
	}
	return ended, refused, err
}
