package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// described is all of settings in lines, with the secrets that they hold.
func described(s Settings) []string {
	lines := append(s.sources(Pip), s.sources(Npm)...)
	for _, c := range s.credentials {
		lines = append(lines, fmt.Sprintf("credential %s%s %s:%s %s", strings.Join(c.origins, ","), c.path, c.user.Reveal(), c.word.Reveal(), c.bearer.Reveal()))
	}
	for _, t := range []struct {
		name string
		trust
	}{{"pip", s.pipTrust}, {"npm", s.npmTrust}} {
		for _, x := range [][]string{t.files, t.texts, t.more, t.lax} {
			if len(x) > 0 {
				lines = append(lines, t.name+" trusts "+strings.Join(x, " "))
			}
		}
	}
	return append(lines, s.warnings...)
}

func TestSettings(t *testing.T) {
	npmDefault, pipDefault := "registry "+publicRegistry(), "index "+publicIndex()+"/"
	tests := []struct {
		name    string
		environ []string
		files   map[string]string
		want    []string
	}{
		{"nothing", nil, nil, []string{pipDefault, npmDefault}},
		{
			"pip: variables outdo files, a command's section the general one, the user's file the system's",
			[]string{"PIP_EXTRA_INDEX_URL=https://b.test/simple https://c.test/simple/"},
			map[string]string{
				"/etc/pip.conf":                    "[global]\nindex-url = https://system.test/simple\ncert = /etc/ca.pem\n[install]\nfind-links = /opt/wheels\n",
				"/home/op/.config/pip/pip.conf":    "[global]\nindex_url: https://user.test/simple\nextra-index-url =\n  https://lost.test\n",
				"/home/op/.pip/pip.conf":           "; old\n[global]\ntrusted-host =\n    a.test\n    B.test:8080\n",
				"/home/op/.config/pip/pip.conf.no": "",
			},
			[]string{"index https://user.test/simple/", "index https://b.test/simple/", "index https://c.test/simple/", "links /opt/wheels", npmDefault, "pip trusts /etc/ca.pem", "pip trusts a.test b.test:8080"},
		},
		{
			"pip: a file of its own, and credentials",
			[]string{"PIP_CONFIG_FILE=~/own.conf", "PIP_CERT=~/ca.pem", "PIP_FIND_LINKS=file:///w ./rel https://l.test/page.html"},
			map[string]string{"/home/op/own.conf": "[global]\nindex-url=https://me:s%40crt@own.test:8443/root/+simple\n"},
			[]string{"index https://own.test:8443/root/+simple/", "links /w", "links https://l.test/page.html", npmDefault, "credential https://own.test:8443/root/+simple/ me:s@crt ", "pip trusts /home/op/ca.pem", "settings: a place of pip's find-links is left out: it is neither a web address nor a whole path"},
		},
		{"pip: no files", []string{"PIP_CONFIG_FILE=/dev/null"}, map[string]string{"/etc/pip.conf": "[global]\nindex-url=https://x.test\n"}, []string{pipDefault, npmDefault}},
		{"pip: no index", []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=/w"}, nil, []string{"links /w", npmDefault}},
		{"pip: what is no address is named by its place only", []string{"PIP_INDEX_URL=ftp://u:secretword@x.test/"}, nil, []string{npmDefault, "settings: an index of pip is left out: it is no web address: write one such as https://index.example.com/simple"}},
		{
			"npm: scopes, tokens and variables of the file",
			[]string{"TOKEN=tok1", "npm_config_registry=https://env.test/npm"},
			map[string]string{
				"/usr/etc/npmrc":  "registry=https://sys.test/\ncafile=/etc/ca.pem\n",
				"/home/op/.npmrc": "; mine\nregistry = \"https://user.test/\"\n@Corp:registry=http://corp.test:4873/x\n//env.test/npm/:_authToken=${TOKEN}\n//corp.test:4873/x/:_auth=bWU6d29yZA==\n//old.test/:username=u\n//old.test/:_password=cHc=\n_authToken=unscoped\n//q.test/:_authToken=${NO?}${NO}\n",
				"/srv/dir/.npmrc": "registry=https://project.test/",
			},
			[]string{
				pipDefault, "registry https://env.test/npm/", "@corp http://corp.test:4873/x/",
				"credential https://corp.test:4873,http://corp.test:4873/x/ me:word ", "credential https://env.test:443,https://env.test:443/npm/ : tok1",
				"credential https://old.test:443/ u:pw ", "credential https://q.test:443/ : ${NO}", "npm trusts /etc/ca.pem",
			},
		},
		{
			"npm: variables in any case",
			[]string{"NPM_CONFIG_USERCONFIG=/x/npmrc", "Npm_Config_Strict_SSL=false", "npm_config_//a.test/:_authToken=Tok", "NODE_EXTRA_CA_CERTS=/more.pem", "SSL_CERT_FILE=/ssl.pem"},
			map[string]string{"/x/npmrc": "@a:registry=https://a.test\n"},
			[]string{pipDefault, npmDefault, "@a https://a.test/", "credential https://a.test:443,https://a.test:443/ : Tok", "pip trusts /ssl.pem", "npm trusts /ssl.pem", "npm trusts /more.pem", "npm trusts *"},
		},
		{
			"netrc",
			[]string{"PIP_INDEX_URL=http://n.test:81/simple"},
			map[string]string{"/home/op/.netrc": "# c\nmachine n.test\n  login me\n  password \"p w\"\nmachine n.test login me2 password pw2\ndefault login anonymous password x\n"},
			[]string{"index http://n.test:81/simple/", npmDefault, "credential https://n.test:443,http://n.test:81/ me:p ", "credential https://n.test:443,http://n.test:81/ me2:pw2 "},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, described(read(t, tt.environ, tt.files))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIndexFlag(t *testing.T) {
	at := Surroundings{Environ: []string{"PIP_EXTRA_INDEX_URL=https://b.test/simple"}, System: "linux", ReadFile: reading(nil), Index: "https://u:pw@flag.test/simple"}
	s, err := ReadSettings(at)
	check(t, err)
	want := []string{"index https://flag.test/simple/", "index https://b.test/simple/"}
	if diff := cmp.Diff(want, s.sources(Pip)); diff != "" {
		t.Error(diff)
	}
	f, err := New(Options{Settings: s, Domains: []string{"other.test"}})
	check(t, err)
	defer f.Close()
	if got := f.hosts.String(); got != "flag.test:443, other.test" {
		t.Errorf("the hosts are %s", got)
	}
	at.Index = "u:secretword@flag.test"
	if _, err := ReadSettings(at); err == nil || strings.Contains(err.Error(), "secretword") || !strings.Contains(err.Error(), "--code-exec-install-index") {
		t.Error(err)
	}
}

func TestPaths(t *testing.T) {
	r := &reader{at: Surroundings{Home: "/h", System: "darwin"}, env: map[string]string{}}
	if diff := cmp.Diff([]string{"/Library/Application Support/pip/pip.conf", "/h/.pip/pip.conf", "/h/.config/pip/pip.conf", "/h/Library/Application Support/pip/pip.conf", ""}, r.pipPaths()); diff != "" {
		t.Error(diff)
	}
	r = &reader{at: Surroundings{System: "linux"}, env: map[string]string{"XDG_CONFIG_DIRS": "/a:/b", "XDG_CONFIG_HOME": "/c"}}
	if diff := cmp.Diff([]string{"/b/pip/pip.conf", "/a/pip/pip.conf", "/etc/pip.conf", "", "/c/pip/pip.conf", ""}, r.pipPaths()); diff != "" {
		t.Error(diff)
	}
}

func TestProxies(t *testing.T) {
	s := read(t, []string{"HTTPS_PROXY=http://u:secretword@proxy.test:3128", "no_proxy=.inner.test,10.0.0.0/8,exact.test:8443", "PIP_PROXY=pip.test:1"}, map[string]string{"/home/op/.npmrc": "https-proxy=http://npm.test:2\nnoproxy=none.test"})
	tests := []struct{ kind, url, want string }{
		{"pip", "https://a.test/", "pip.test:1"},
		{"pip", "http://a.test/", "pip.test:1"},
		{"npm", "https://a.test/", "npm.test:2"},
		{"npm", "http://a.test/", ""},
		{"npm", "https://x.none.test/", ""},
		{"pip", "https://deep.inner.test/", ""},
		{"pip", "https://inner.test/", ""},
		{"pip", "https://notinner.test/", "pip.test:1"},
		{"pip", "https://10.2.3.4/", ""},
		{"pip", "https://exact.test:8443/", ""},
		{"pip", "https://exact.test/", "pip.test:1"},
		{"pip", "http://localhost:8080/", ""},
	}
	for _, tt := range tests {
		got := ""
		if u := s.proxies[Kind(tt.kind)].of(mustURL(t, tt.url)); u != nil {
			got = u.Host
		}
		if got != tt.want {
			t.Errorf("%s %s goes through %q, want %q", tt.kind, tt.url, got, tt.want)
		}
	}
	if !s.proxies[Npm].isProxy("npm.test:2") || s.proxies[Npm].isProxy("npm.test:3") {
		t.Error("a proxy is not known by its address")
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("[global]\nindex-url = https://a.test\n", "//a.test/:_authToken=x\n", "machine a login b password c")
	f.Fuzz(func(t *testing.T, pip, npm, netrc string) {
		s := read(t, nil, map[string]string{"/etc/pip.conf": pip, "/home/op/.npmrc": npm, "/home/op/.netrc": netrc})
		for _, u := range s.servers() {
			if u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("a place has %q", u)
			}
		}
	})
}
