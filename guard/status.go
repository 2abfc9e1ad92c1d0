package guard

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeStatus answers with an error in the API's own form.
func writeStatus(w http.ResponseWriter, err *apierrors.StatusError) {
	b := statusJSON(err)
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(int(err.ErrStatus.Code))
	_, _ = w.Write(b) // There is nobody to tell.
}

func statusJSON(err *apierrors.StatusError) []byte {
	s := err.ErrStatus
	s.Kind, s.APIVersion = "Status", "v1"
	b, _ := json.Marshal(s) // It has no parts that cannot be written.
	return b
}

// writeNoPage answers as the API server does for a path that it does not know.
func writeNoPage(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

func newStatus(code int, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// forbidden is a refusal in the words of the API server's authoriser, and why.
func forbidden(user, verb, what, why string) *apierrors.StatusError {
	return newStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: User %q cannot %s %s: %s", user,
		verb, what, why)
}

func (t target) notFound() *apierrors.StatusError {
	return apierrors.NewNotFound(t.groupResource(), t.objectName())
}

// unavailable is what a client hears while the API server does not answer.
func unavailable() *apierrors.StatusError {
	return apierrors.NewServiceUnavailable("the API server does not answer: try again later")
}
