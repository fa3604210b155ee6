package registry

import (
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// readPip finds pip's settings as pip does: its variables outdo its files, the section
// of a command outdoes the general one, and the user's file outdoes the system's.
func (r *reader) readPip() {
	set := r.pipFiles()
	for name, value := range r.env {
		if key, found := strings.CutPrefix(name, "PIP_"); found && value != "" {
			set[pipKey(key)] = value
		}
	}
	if !truthy(set["no-index"]) {
		r.pipIndexes(set)
	}
	for _, text := range strings.Fields(set["find-links"]) {
		r.pipLinks(text)
	}
	r.pipTrust.files = firstFile(set["cert"], r.env["REQUESTS_CA_BUNDLE"], r.env["CURL_CA_BUNDLE"], r.env["SSL_CERT_FILE"])
	for i, file := range r.pipTrust.files {
		r.pipTrust.files[i] = r.expand(file)
	}
	r.pipTrust.lax = strings.Fields(strings.ToLower(set["trusted-host"]))
	r.own["pip"] = set["proxy"]
	if set["client-cert"] != "" {
		r.warn("settings: pip's client-cert is not used: reach that index through a host that needs none")
	}
}

func firstFile(files ...string) []string {
	for _, file := range files {
		if file != "" {
			return []string{file}
		}
	}
	return nil
}

func truthy(text string) bool {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "y", "t", "on":
		return true
	}
	return false
}

func pipKey(name string) string {
	return strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(name, "_", "-")), "--")
}

func (r *reader) pipIndexes(set map[string]string) {
	first := set["index-url"]
	if first == "" {
		first = set["pypi-url"]
	}
	if first == "" {
		first = publicIndex()
	}
	for _, text := range append([]string{first}, strings.Fields(set["extra-index-url"])...) {
		u, err := r.address(text)
		if err != nil {
			r.warn("settings: an index of pip is left out: %v", err)
			continue
		}
		r.pip = append(r.pip, source{url: u})
	}
}

// pipLinks takes one place of find-links: a directory, or a page.
func (r *reader) pipLinks(text string) {
	dir := r.expand(text)
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		dir = filepath.FromSlash(u.Path)
	} else if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		page, err := r.address(text)
		if err != nil {
			r.warn("settings: a place of pip's find-links is left out: %v", err)
			return
		}
		page.Path = strings.TrimSuffix(page.Path, "/")
		if strings.HasSuffix(u.Path, "/") {
			page.Path += "/"
		}
		r.links = append(r.links, source{url: page})
		return
	}
	if !filepath.IsAbs(dir) {
		r.warn("settings: a place of pip's find-links is left out: it is neither a web address nor a whole path")
		return
	}
	r.links = append(r.links, source{dir: filepath.Clean(dir)})
}

// pipFiles are the settings of pip's files.
func (r *reader) pipFiles() map[string]string {
	general, command := map[string]string{}, map[string]string{}
	for _, path := range r.pipPaths() {
		text, ok := r.file(path)
		if !ok {
			continue
		}
		for section, values := range parseIni(text) {
			switch section {
			case "global":
				maps.Copy(general, values)
			case "install":
				maps.Copy(command, values)
			}
		}
	}
	maps.Copy(general, command)
	return general
}

// pipPaths are pip's files, the least important first.
func (r *reader) pipPaths() []string {
	own := r.env["PIP_CONFIG_FILE"]
	if own == "/dev/null" || strings.EqualFold(own, "nul") {
		return nil
	}
	name := "pip.conf"
	var paths []string
	switch r.at.System {
	case "windows":
		name = "pip.ini"
		paths = append(paths, joined(r.env["ProgramData"], "pip", name), r.home("pip", name), joined(r.env["APPDATA"], "pip", name))
	case "darwin":
		paths = append(paths, "/Library/Application Support/pip/pip.conf", r.home(".pip", name), r.xdg(name),
			r.home("Library", "Application Support", "pip", name))
	default:
		system := r.env["XDG_CONFIG_DIRS"]
		if system == "" {
			system = "/etc/xdg"
		}
		for _, dir := range slices.Backward(filepath.SplitList(system)) {
			paths = append(paths, joined(dir, "pip", name))
		}
		paths = append(paths, "/etc/pip.conf", r.home(".pip", name), r.xdg(name))
	}
	return append(paths, r.expand(own))
}

func (r *reader) xdg(name string) string {
	if dir := r.env["XDG_CONFIG_HOME"]; dir != "" {
		return filepath.Join(dir, "pip", name)
	}
	return r.home(".config", "pip", name)
}

// joined is a path below a directory that may be unknown.
func joined(dir string, elem ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, elem...)...)
}

// parseIni reads sections of "key = value", where an indented line goes on with the
// value before it.
func parseIni(text string) map[string]map[string]string {
	sections := map[string]map[string]string{}
	var section, key string
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimRight(line, "\r\n\t ")
		bare := strings.TrimSpace(line)
		switch {
		case bare == "" || strings.HasPrefix(bare, "#") || strings.HasPrefix(bare, ";"):
		case key != "" && (line[0] == ' ' || line[0] == '\t'):
			sections[section][key] += "\n" + bare
		case strings.HasPrefix(bare, "[") && strings.HasSuffix(bare, "]"):
			section, key = bare[1:len(bare)-1], ""
		default:
			at := strings.IndexAny(bare, "=:")
			if at < 0 {
				key = ""
				continue
			}
			if sections[section] == nil {
				sections[section] = map[string]string{}
			}
			key = pipKey(strings.TrimSpace(bare[:at]))
			sections[section][key] = strings.TrimSpace(bare[at+1:])
		}
	}
	return sections
}
