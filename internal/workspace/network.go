package workspace

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/metier-run/metier/internal/config"
)

// bundleName is the file in the state folder that holds the certificates of this host
// that launches with its network believe.
const bundleName = "certificates.pem"

// network is what launches with this host's network need to know of it: its proxies,
// as far as they hold no credentials, and the certificates that it believes (seed 1,
// "Launch backends"; B1 8.6). Nothing else of the environment is handed on.
func (w *Workspace) network() []string {
	env := proxies(w.o.Environ)
	var names []string
	var bundle []byte
	for _, name := range certificateVariables() {
		file, ok := lookup(w.o.Environ, name)
		if !ok || file == "" {
			continue
		}
		found, err := certificates(file, w.o.Limits.Get(config.Certificates))
		if err != nil || len(found) == 0 {
			w.o.Logger.Warn("certificates of this host are not handed to launches", "variable", name, "error", err)
			continue
		}
		names = append(names, name)
		if !strings.Contains(string(bundle), string(found)) {
			bundle = append(bundle, found...)
		}
	}
	if len(names) == 0 {
		return env
	}
	to := filepath.Join(w.State(), bundleName)
	if err := writeNew(to, string(bundle), 0o644); err != nil {
		w.o.Logger.Warn("certificates of this host are not handed to launches", "error", err)
		return env
	}
	for _, name := range names {
		env = append(env, name+"="+to)
	}
	return env
}

// proxies are the variables that name proxies, in both spellings, without those that
// hold a user or a password.
func proxies(environ []string) []string {
	var env []string
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy", "no_proxy", "grpc_proxy"} {
		value, ok := lookup(environ, name)
		if !ok || value == "" {
			value, ok = lookup(environ, strings.ToUpper(name))
		}
		if !ok || value == "" || strings.ContainsFunc(value, unicode.IsControl) || name != "no_proxy" && !plainProxy(value) {
			continue
		}
		env = append(env, name+"="+value, strings.ToUpper(name)+"="+value)
	}
	return env
}

// plainProxy reports whether an address is one of a proxy without credentials.
func plainProxy(value string) bool {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && !strings.Contains(value, "@")
}

// certificateVariables are those by which programs find the certificates to believe.
func certificateVariables() []string {
	return []string{
		"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE",
		"NPM_CONFIG_CAFILE", "DENO_CERT",
	}
}

// certificates are the valid public certificates of a file, and nothing else that it
// holds: a private key beside them stays here.
func certificates(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is no file"), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	var out []byte
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return out, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
}
