//go:build unix

package interpreter

import (
	"path/filepath"
)

// pyenv is a home with pyenv, its three versions and a version file.
func pyenv(chosen string, more host) host {
	h := host{
		"usr/bin/python3":                              program,
		"home/u/.pyenv/shims/python3":                  script,
		"home/u/.pyenv/shims/python3.13":               script,
		"home/u/.pyenv/shims/python3.11":               script,
		"home/u/.pyenv/version":                        chosen,
		"home/u/.pyenv/versions/2.7.18/bin/python":     program,
		"home/u/.pyenv/versions/3.9.18/bin/python3":    "-> python3.9",
		"home/u/.pyenv/versions/3.9.18/bin/python3.9":  program,
		"home/u/.pyenv/versions/3.11.7/bin/python3":    "-> python3.11",
		"home/u/.pyenv/versions/3.11.7/bin/python3.11": program,
		"home/u/.pyenv/versions/3.13.0/bin/python3":    "-> python3.13",
		"home/u/.pyenv/versions/3.13.0/bin/python3.13": program,
		"home/u/.pyenv/versions/3.14-dev/bin/python3":  program,
	}
	for name, text := range more {
		h[name] = text
		if text == "" {
			delete(h, name)
		}
	}
	return h
}

const (
	pyenvPath = "$R/home/u/.pyenv/shims:$R/usr/bin"
	asdfPath  = "$R/home/u/.asdf/shims:$R/usr/bin"
	misePath  = "$R/home/u/.local/share/mise/shims:$R/usr/bin"
)

func under311(name string, h host, path string) example {
	return example{name: name, host: h, path: path, want: "home/u/.pyenv/versions/3.11.7/bin/python3.11", version: "3.11", read: []string{"home/u/.pyenv/versions/3.11.7"}}
}

func managedHosts() []example {
	all := append(pyenvHosts(), installHosts()...)
	return append(all, environmentHosts()...)
}

func pyenvHosts() []example {
	return []example{
		under311("pyenv", pyenv("3.11.7\n", nil), pyenvPath),
		under311("pyenv, several versions", pyenv("9.9.9\n3.11.7\n3.13.0\n", host{"home/u/.pyenv/shims/python3.13": ""}), pyenvPath),
		under311("pyenv, the beginning of a version", pyenv("3.11", nil), pyenvPath),
		under311("pyenv, shims behind a link", pyenv("3.11.7", host{"home/u/shortcut": "-> .pyenv/shims"}), "$R/home/u/shortcut:$R/usr/bin"),
		{name: "pyenv, a chosen version under its own name", host: pyenv("3.11.7:3.13.0", nil), path: pyenvPath, want: "home/u/.pyenv/versions/3.13.0/bin/python3.13", version: "3.13", read: []string{"home/u/.pyenv/versions/3.13.0"}},
		{name: "pyenv, no version file", host: pyenv("", host{"home/u/.pyenv/version": ""}), path: pyenvPath, want: "home/u/.pyenv/versions/3.13.0/bin/python3.13", version: "3.13", read: []string{"home/u/.pyenv/versions/3.13.0"}},
		{name: "pyenv, a version that is gone", host: pyenv("3.12.1", nil), path: pyenvPath, want: "home/u/.pyenv/versions/3.13.0/bin/python3.13", version: "3.13", read: []string{"home/u/.pyenv/versions/3.13.0"}},
		{name: "pyenv, system", host: pyenv("system", nil), path: pyenvPath, want: "usr/bin/python3"},
		{name: "pyenv, a version that leads out", host: pyenv("../../../../usr", nil), path: pyenvPath, want: "home/u/.pyenv/versions/3.13.0/bin/python3.13", version: "3.13", read: []string{"home/u/.pyenv/versions/3.13.0"}},
		{
			name: "pyenv, an environment", host: pyenv("mine", host{
				"home/u/.pyenv/versions/mine": "-> 3.11.7/envs/mine", "home/u/.pyenv/versions/3.11.7/envs/mine/bin/python3": "-> ../../../bin/python3.11",
				"home/u/.pyenv/versions/3.11.7/envs/mine/pyvenv.cfg": "home = $R/home/u/.pyenv/versions/3.11.7/bin\n", "home/u/.pyenv/versions/3.11.7/envs/mine/lib/python3.11/site-packages/x.py": "x",
			}),
			path: pyenvPath, want: "home/u/.pyenv/versions/3.11.7/bin/python3.11", version: "3.11",
			read:     []string{"home/u/.pyenv/versions/3.11.7", "home/u/.pyenv/versions/3.11.7/envs/mine"},
			bin:      []string{"home/u/.pyenv/versions/3.11.7/envs/mine/bin", "home/u/.pyenv/versions/3.11.7/bin"},
			packages: []string{"home/u/.pyenv/versions/3.11.7/envs/mine/lib/python3.11/site-packages"},
		},
		{
			name: "pyenv elsewhere", host: host{"opt/pyenv/versions/3.11.7/bin/python3": program, "opt/pyenv/version": "3.11.7", "home/u/x/shims/python3": script, "usr/bin/python3": program},
			path: "$R/home/u/x/shims:$R/usr/bin", set: func(o *Options) { o.PyenvRoot = filepath.Join(filepath.Dir(o.Dir), "opt/pyenv") },
			want: "opt/pyenv/versions/3.11.7/bin/python3", version: "3.11.7", read: []string{"opt/pyenv/versions/3.11.7"},
		},
		{
			name: "a version that is a shim again", host: host{"home/u/.pyenv/shims/python3": program, "home/u/.pyenv/version": "3.11.7", "home/u/.pyenv/versions/3.11.7/bin/python3": "-> ../../../shims/python3", "usr/bin/python3": program},
			path: pyenvPath, want: "usr/bin/python3",
		},
		{name: "a shim of nobody", host: host{"home/u/shims/python3": script, "usr/bin/python3": program}, path: "$R/home/u/shims:$R/usr/bin", want: "usr/bin/python3"},
		{name: "only a shim of nobody", host: host{"home/u/shims/python3": script}, path: "$R/home/u/shims", fails: "home/u/shims/python3 is a shim of a version manager"},
		{
			name: "nodenv", kind: Node, host: host{"home/u/.nodenv/shims/node": script, "home/u/.nodenv/version": "v20.11.0\n", "home/u/.nodenv/versions/20.11.0/bin/node": program, "home/u/.nodenv/versions/v20.11.0/bin/node": program},
			path: "$R/home/u/.nodenv/shims", want: "home/u/.nodenv/versions/v20.11.0/bin/node", version: "20.11.0", read: []string{"home/u/.nodenv/versions/v20.11.0"},
		},
	}
}

func installHosts() []example {
	asdf := func(chosen string) host {
		return host{
			"home/u/.asdf/shims/python3": script, "home/u/.asdf/shims/node": script, "home/u/.tool-versions": chosen, "usr/bin/python3": program, "usr/bin/node": program,
			"home/u/.asdf/installs/python/3.10.2/bin/python3": program, "home/u/.asdf/installs/python/3.9.9/bin/python3": program,
			"home/u/.asdf/installs/nodejs/18.20.1/bin/node": program, "home/u/.asdf/installs/nodejs/9.0.0/bin/node": program,
		}
	}
	mise := func(config string) host {
		return host{
			"home/u/.local/share/mise/shims/python3": "-> $R/usr/bin/mise", "usr/bin/mise": program, "usr/bin/python3": program, "home/u/.config/mise/config.toml": config,
			"home/u/.local/share/mise/installs/python/3.12.3/bin/python3.12": program, "home/u/.local/share/mise/installs/python/3.12.3/bin/python3": "-> python3.12",
			"home/u/.local/share/mise/installs/python/latest": "-> 3.12.3", "home/u/.local/share/mise/installs/python/3.11.1/bin/python3": program,
		}
	}
	const installs, mises = "home/u/.asdf/installs/", "home/u/.local/share/mise/installs/python/"
	return []example{
		{name: "asdf", host: asdf("# mine\nnodejs 9.0.0 18.20.1\npython 3.9.9 # old\n"), path: asdfPath, want: installs + "python/3.9.9/bin/python3", version: "3.9.9", read: []string{installs + "python/3.9.9"}},
		{name: "asdf, node", kind: Node, host: asdf("nodejs 9.0.0 18.20.1\n"), path: asdfPath, want: installs + "nodejs/9.0.0/bin/node", version: "9.0.0", read: []string{installs + "nodejs/9.0.0"}},
		{name: "asdf, nothing chosen", host: asdf("ruby 3.3.0\n"), path: asdfPath, want: installs + "python/3.10.2/bin/python3", version: "3.10.2", read: []string{installs + "python/3.10.2"}},
		{name: "asdf, system", host: asdf("python system\n"), path: asdfPath, want: "usr/bin/python3"},
		{
			name: "asdf elsewhere", host: host{"srv/asdf/installs/python/3.10.2/bin/python3": program, "home/u/s/shims/python3": script},
			path: "$R/home/u/s/shims", set: func(o *Options) { o.AsdfData = filepath.Join(filepath.Dir(o.Dir), "srv/asdf") },
			want: "srv/asdf/installs/python/3.10.2/bin/python3", version: "3.10.2", read: []string{"srv/asdf/installs/python/3.10.2"},
		},
		{name: "mise", host: mise("[tools]\npython = [\"3.11\", \"3.12\"]\n"), path: misePath, want: mises + "3.11.1/bin/python3", version: "3.11.1", read: []string{mises + "3.11.1"}},
		{name: "mise, latest", host: mise("[tools]\npython = {version = \"latest\"}\n"), path: misePath, want: mises + "3.12.3/bin/python3.12", version: "3.12", read: []string{mises + "3.12.3"}},
		{name: "mise, a file that is broken", host: mise("[tools\n"), path: misePath, want: mises + "3.12.3/bin/python3.12", version: "3.12", read: []string{mises + "3.12.3"}},
		{
			name: "nvm", kind: Node, host: host{"home/u/.nvm/versions/node/v20.11.0/bin/node": program, "usr/bin/node": program}, path: "$R/home/u/.nvm/versions/node/v20.11.0/bin:$R/usr/bin",
			want: "home/u/.nvm/versions/node/v20.11.0/bin/node", version: "20.11.0", read: []string{"home/u/.nvm/versions/node/v20.11.0"},
		},
		{
			name: "fnm", kind: Node, host: host{"run/fnm/1_2": "-> $R/home/u/.fnm/node-versions/v22.1.0/installation", "home/u/.fnm/node-versions/v22.1.0/installation/bin/node": program}, path: "$R/run/fnm/1_2/bin",
			want: "home/u/.fnm/node-versions/v22.1.0/installation/bin/node", version: "22.1.0", read: []string{"home/u/.fnm/node-versions/v22.1.0/installation"},
		},
		volta("volta", `{"node":{"runtime":"18.2.0","npm":null}}`, "18.2.0"),
		volta("volta, nothing chosen", `{`, "20.9.0"),
		{name: "volta, nothing installed", kind: Node, host: host{"home/u/.volta/bin/node": "-> volta-shim", "home/u/.volta/bin/volta-shim": program, "usr/bin/node": program}, path: "$R/home/u/.volta/bin:$R/usr/bin", want: "usr/bin/node"},
	}
}

func volta(name, platform, want string) example {
	const image = "home/u/.volta/tools/image/node/"
	return example{name: name, kind: Node, host: host{
		"home/u/.volta/bin/node": "-> volta-shim", "home/u/.volta/bin/volta-shim": program, "home/u/.volta/tools/user/platform.json": platform,
		image + "18.2.0/bin/node": program, image + "20.9.0/bin/node": program,
	}, path: "$R/home/u/.volta/bin", want: image + want + "/bin/node", version: want, read: []string{image + want}}
}

func environmentHosts() []example {
	venv := func(more host) host {
		h := host{
			"usr/bin/python3.13": program, "usr/bin/python3.11": program, "usr/bin/python3": "-> python3.11",
			"srv/env/bin/python3": "-> $R/usr/bin/python3.11", "srv/env/bin/python": "-> python3", "srv/env/pyvenv.cfg": "home = $R/usr/bin\ninclude-system-site-packages = false\n",
			"srv/env/lib/python3.11/site-packages/x.py": "x", "srv/env/lib64": "-> lib",
		}
		for name, text := range more {
			h[name] = text
			if text == "" {
				delete(h, name)
			}
		}
		return h
	}
	site := []string{"srv/env/lib/python3.11/site-packages"}
	both := []string{"srv/env/bin", "usr/bin"}
	const path = "$R/srv/env/bin:$R/usr/bin"
	return []example{
		{name: "an environment comes before what is newer", host: venv(nil), path: path, want: "usr/bin/python3.11", version: "3.11", read: []string{"srv/env"}, packages: site, bin: both},
		{name: "an environment behind python3", host: venv(nil), path: "$R/usr/bin:$R/srv/env/bin", want: "usr/bin/python3.13", version: "3.13"},
		{name: "an environment with a copy", host: venv(host{"srv/env/bin/python3": program}), path: path, want: "usr/bin/python3.11", version: "3.11", read: []string{"srv/env"}, packages: site, bin: both},
		{name: "an environment whose base is gone", host: venv(host{"srv/env/bin/python3": "-> $R/gone", "srv/env/pyvenv.cfg": "home = $R/gone\n"}), path: path, want: "usr/bin/python3.13", version: "3.13"},
		{name: "an environment whose base is itself", host: venv(host{"srv/env/bin/python3": program, "srv/env/pyvenv.cfg": "home = $R/srv/env/bin\n"}), path: path, want: "usr/bin/python3.13", version: "3.13"},
		{
			name: "an environment over a version of its own", host: venv(host{"srv/env/bin/python3": "-> $R/home/u/uv/cpython-3.11/bin/python3.11", "home/u/uv/cpython-3.11": "-> cpython-3.11.8-linux", "home/u/uv/cpython-3.11.8-linux/bin/python3.11": program}),
			path: path, want: "home/u/uv/cpython-3.11.8-linux/bin/python3.11", version: "3.11", read: []string{"home/u/uv/cpython-3.11.8-linux", "srv/env"}, packages: site,
			bin: []string{"srv/env/bin", "home/u/uv/cpython-3.11.8-linux/bin"},
		},
		{
			name: "an environment in the home itself", host: host{"usr/bin/python3.11": program, "home/u/bin/python3": "-> $R/usr/bin/python3.11", "home/u/pyvenv.cfg": "home = $R/usr/bin\n", "home/u/lib/python3.11/site-packages/x.py": "x"},
			path: "$R/home/u/bin", want: "usr/bin/python3.11", version: "3.11", read: []string{"home/u/lib/python3.11/site-packages"}, packages: []string{"home/u/lib/python3.11/site-packages"},
		},
		{name: "packages that lead out", host: venv(host{"srv/env/lib/python3.11/site-packages/x.py": "", "srv/env/lib/python3.11/site-packages": "-> $R/home/u", "home/u/.ssh/id": "x"}), path: path, want: "usr/bin/python3.11", version: "3.11", read: []string{"srv/env"}, bin: both},
	}
}
