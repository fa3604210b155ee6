package egress

import "github.com/metier-run/metier/internal/sandbox"

// Environment is what a proxied launch needs in its environment, each "NAME=value", so
// that what runs there uses the proxy at [sandbox.ProxyAddress]. curl, git, wget, pip and
// most of what links libcurl or reads these names in another language need no more;
// npm and pip have names of their own, which a setting of the user would outdo
// otherwise; and Node.js reads any of them only when told to (from 22.21 and 24 on).
//
// The exceptions are empty, so that no host is sought past the proxy. A program that talks
// to a server of its own launch has to be told to use no proxy for that.
func Environment() []string {
	const proxy = "http://" + sandbox.ProxyAddress
	return []string{
		"http_proxy=" + proxy, "HTTP_PROXY=" + proxy,
		"https_proxy=" + proxy, "HTTPS_PROXY=" + proxy,
		"all_proxy=" + proxy, "ALL_PROXY=" + proxy,
		"no_proxy=", "NO_PROXY=",
		"npm_config_proxy=" + proxy, "npm_config_https_proxy=" + proxy, "npm_config_noproxy=",
		"PIP_PROXY=" + proxy,
		"NODE_USE_ENV_PROXY=1",
	}
}
