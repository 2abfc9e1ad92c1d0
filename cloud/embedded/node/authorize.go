package node

import (
	"context"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// gated shows requests to the fleet's gate, if it has one. Those with a certificate of the privileged
// group are the API server's, which has asked its own gate: no certificate request for that group is
// ever granted.
func (k *kubelet) gated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := next
		if gate := k.node.fleet.gate.Load(); gate != nil && !ofServer(r) {
			h = (*gate)(next)
		}
		h.ServeHTTP(w, r)
	})
}

func ofServer(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 &&
		slices.Contains(r.TLS.VerifiedChains[0][0].Subject.Organization, user.SystemPrivilegedGroup)
}

// authorized lets through who may use the node's API, as a kubelet with webhook authorization does:
// a certificate or a token says who asks, and the API server says whether they may.
func (k *kubelet) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := k.authenticate(r)
		if !ok {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if !slices.Contains(who.Groups, user.SystemPrivilegedGroup) && !k.allowed(r, who) {
			verb, resource := access(r)
			http.Error(w, "Forbidden (user="+who.Username+", verb="+verb+", resource=nodes, subresource="+resource+")",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (k *kubelet) authenticate(r *http.Request) (authenticationv1.UserInfo, bool) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		subject := r.TLS.VerifiedChains[0][0].Subject
		return authenticationv1.UserInfo{Username: subject.CommonName, Groups: subject.Organization}, true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return authenticationv1.UserInfo{}, false
	}
	review, err := k.node.fleet.cfg.Client.AuthenticationV1().TokenReviews().Create(r.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: strings.TrimSpace(token)}},
		metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return authenticationv1.UserInfo{}, false
	}
	return review.Status.User, true
}

// access is what a request needs permission for.
func access(r *http.Request) (verb, subresource string) {
	verb = map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update",
		http.MethodPatch: "patch", http.MethodDelete: "delete",
	}[r.Method]
	for prefix, name := range map[string]string{
		"/stats": "stats", "/metrics": "metrics", "/logs": "log",
		"/pods": "pods", "/healthz": "healthz", "/configz": "configz",
	} {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return verb, name
		}
	}
	return verb, "proxy"
}

func (k *kubelet) allowed(r *http.Request, who authenticationv1.UserInfo) bool {
	verb, subresource := access(r)
	if k.review(r.Context(), who, verb, subresource) {
		return true
	}
	// The finer permissions are younger; the old one covers everything.
	return subresource != "proxy" && k.review(r.Context(), who, verb, "proxy")
}

func (k *kubelet) review(ctx context.Context, who authenticationv1.UserInfo, verb, subresource string) bool {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range who.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	res, err := k.node.fleet.cfg.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.Username, Groups: who.Groups, UID: who.UID, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Version: "v1", Resource: "nodes",
				Subresource: subresource, Name: k.node.spec.Name,
			},
		}}, metav1.CreateOptions{})
	return err == nil && res.Status.Allowed
}
