package access

import "net/http"

// Require lets holders of a key through to next, with the caller in the
// request's context; everybody else is refused with [fault.Unauthenticated] in
// the form of whoever refuses. Without keys everybody goes through as anonymous,
// and their headers stay as they are: a client's own key is for the upstream then.
//
// A key of this server ends here: with keys, both headers that can carry one are
// taken out of the request, whichever of them was the right one, so that neither
// can go upstream.
func Require(keys *Keys, next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := keys.Identify(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="metier"`)
			refuse(w, r, err)
			return
		}
		r = r.WithContext(WithCaller(r.Context(), caller))
		if keys.Len() > 0 {
			r.Header = r.Header.Clone()
			r.Header.Del(authorization)
			r.Header.Del(apiKey)
		}
		next.ServeHTTP(w, r)
	})
}
