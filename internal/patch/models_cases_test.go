package patch

import "strings"

// scenario is a right patch, the files it is for, and what must come of it. The
// latter is made by hand, not by this package.
type scenario struct {
	name        string
	files, want map[string]string
	patch       string // sections, without the envelope
}

const pyShop = `import os
import sys


class Cart:
    def __init__(self):
        self.items = []

    def total(self):
        result = 0
        for item in self.items:
            result += item.price
        return result


class Order:
    def __init__(self, cart):
        self.cart = cart

    def total(self):
        result = 0
        for item in self.cart.items:
            result += item.price
        return result


def main():
    name = "it's a shop"
    print(name, Cart().total())
`

const goServer = "package server\n\nimport \"fmt\"\n\n// Run serves.\nfunc Run(addr string) error {\n\tif addr == \"\" {\n\t\treturn fmt.Errorf(\"no address\")\n\t}\n\tfor i := range 3 {\n\t\tfmt.Println(i)\n\t}\n\treturn nil\n}\n\nfunc Stop() {\n\tfmt.Println(\"stop\")\n}\n"

const yamlConf = "name: shop\nservices:\n  web:\n    image: web:1\n    ports:\n      - \"80:80\"\n  db:\n    image: db:1\n    ports:\n      - \"5432:5432\"\nvolumes:\n  data: {}\n"

const markdown = "# Shop\n\nA shop -- with \"quotes\".\n\n## Use\n\n- first\n- second\n+ plus\n\n***\n\nThe end.\n"

const jsCRLF = "const a = 1;\r\n\r\nfunction add(x, y) {\r\n  return x + y;\r\n}\r\n\r\nmodule.exports = { add };\r\n"

const shell = "#!/bin/sh\nset -e\n\nbuild() {\n  make all   \n  make check\n}\n\nbuild\n"

// with is a file set with one part of one file replaced, once.
func with(files map[string]string, name, old, new string) map[string]string {
	next := map[string]string{}
	for n, s := range files {
		next[n] = s
	}
	if strings.Count(files[name], old) != 1 {
		panic(name + " does not hold once: " + old)
	}
	next[name] = strings.Replace(files[name], old, new, 1)
	return next
}

func scenarios() []scenario {
	py := map[string]string{"src/shop.py": pyShop, "README.md": markdown}
	twice := map[string]string{"server.go": goServer}
	conf := map[string]string{"conf.yaml": yamlConf}
	doc := map[string]string{"README.md": markdown}
	js := map[string]string{"lib/add.js": jsCRLF}
	sh := map[string]string{"build.sh": shell}
	several := map[string]string{"src/shop.py": pyShop, "old.txt": "one\ntwo\n", "conf.yaml": yamlConf}
	after := with(several, "src/shop.py", "import sys\n", "import sys\nimport json\n")
	delete(after, "old.txt")
	after["src/new.py"] = "import os\n\n\ndef fresh():\n    return os.name\n"
	after["conf.yaml"] = strings.Replace(yamlConf, "web:1", "web:2", 1)
	moved := map[string]string{"src/server.go": strings.Replace(goServer, "stop", "stopped", 1)}
	return []scenario{
		{
			"anchor", py,
			with(py, "src/shop.py", "self.cart.items:\n            result += item.price", "self.cart.items:\n            result += item.price * item.count"),
			"*** Update File: src/shop.py\n@@ class Order:\n         for item in self.cart.items:\n-            result += item.price\n+            result += item.price * item.count\n         return result",
		},
		{
			"tabs", twice,
			with(with(twice, "server.go", "\tfor i := range 3 {\n\t\tfmt.Println(i)\n", "\tfor i := range 5 {\n\t\tif i > 2 {\n\t\t\tfmt.Println(i)\n\t\t}\n"), "server.go", "\"stop\"", "\"stopped\""),
			"*** Update File: server.go\n@@ func Run(addr string) error {\n \t\treturn fmt.Errorf(\"no address\")\n \t}\n-\tfor i := range 3 {\n-\t\tfmt.Println(i)\n+\tfor i := range 5 {\n+\t\tif i > 2 {\n+\t\t\tfmt.Println(i)\n+\t\t}\n \t}\n \treturn nil\n@@ func Stop() {\n-\tfmt.Println(\"stop\")\n+\tfmt.Println(\"stopped\")\n }",
		},
		{
			"several", several, after,
			"*** Update File: src/shop.py\n@@\n import os\n import sys\n+import json\n \n \n class Cart:\n*** Delete File: old.txt\n*** Add File: src/new.py\n+import os\n+\n+\n+def fresh():\n+    return os.name\n*** Update File: conf.yaml\n@@ services:\n   web:\n-    image: web:1\n+    image: web:2\n     ports:",
		},
		{
			"move",
			map[string]string{"server.go": goServer},
			moved,
			"*** Update File: server.go\n*** Move to: src/server.go\n@@ func Stop() {\n-\tfmt.Println(\"stop\")\n+\tfmt.Println(\"stopped\")\n }",
		},
		{
			"yaml", conf,
			with(conf, "conf.yaml", "image: db:1\n", "image: db:1\n    restart: always\n"),
			"*** Update File: conf.yaml\n@@ services:\n   db:\n     image: db:1\n+    restart: always\n     ports:\n       - \"5432:5432\"",
		},
		{
			"markdown", doc,
			with(with(doc, "README.md", "- second\n", "- second\n- third\n"), "README.md", "with \"quotes\"", "with 'single quotes'"),
			"*** Update File: README.md\n@@ # Shop\n \n-A shop -- with \"quotes\".\n+A shop -- with 'single quotes'.\n \n@@ ## Use\n \n - first\n - second\n+- third\n + plus\n \n ***",
		},
		{
			"crlf", js,
			with(js, "lib/add.js", "  return x + y;\r\n}\r\n", "  return x + y;\r\n}\r\n\r\nfunction sub(x, y) {\r\n  return x - y;\r\n}\r\n"),
			"*** Update File: lib/add.js\n@@\n   return x + y;\n }\n+\n+function sub(x, y) {\n+  return x - y;\n+}\n \n module.exports = { add };",
		},
		{
			"trailing", sh,
			with(sh, "build.sh", "make check\n}\n\nbuild\n", "make check\n  make install\n}\n\nbuild\necho done\n"),
			"*** Update File: build.sh\n@@ build() {\n   make all   \n   make check\n+  make install\n }\n@@\n \n build\n+echo done\n*** End of File",
		},
	}
}

// mutation is a way in which models spoil a right patch. It gives "" if it has
// nothing to change in one.
type mutation struct {
	name string
	do   func(s scenario) string
}

// lines makes a mutation of the lines between the markers.
func lines(name string, do func(l string) []string) mutation {
	return mutation{name, func(s scenario) string {
		var out []string
		changed := false
		for l := range strings.SplitSeq(s.patch, "\n") {
			next := do(l)
			changed = changed || len(next) != 1 || next[0] != l
			out = append(out, next...)
		}
		if !changed {
			return ""
		}
		return env(out...)
	}}
}

// whole makes a mutation of the whole text.
func whole(name string, do func(text string) string) mutation {
	return mutation{name, func(s scenario) string { return do(env(s.patch)) }}
}

func isBody(l string) bool {
	return l != "" && (l[0] == ' ' || l[0] == '-' || l[0] == '+')
}

func isKept(l string) bool { return l != "" && l[0] == ' ' }

// body makes a mutation of the text of lines that a test picks, behind their
// prefix. A new file is left alone: there is nothing to compare it with, so
// nobody can tell that its lines are spoiled.
func body(name string, pick func(l string) bool, do func(text string) string) mutation {
	return mutation{name, func(s scenario) string {
		added := false
		return lines("", func(l string) []string {
			if strings.HasPrefix(l, "***") {
				added = strings.HasPrefix(l, "*** Add")
			}
			if added || !isBody(l) || !pick(l) {
				return []string{l}
			}
			return []string{l[:1] + do(l[1:])}
		}).do(s)
	}}
}

func anyLine(string) bool { return true }

func isHeader(l string) bool { return strings.HasPrefix(l, "***") && strings.Contains(l, " File: ") }
