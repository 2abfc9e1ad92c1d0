package guard

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// modify filters the API server's answer, and journals it if it is one to a write.
func (x *exchange) modify(resp *http.Response) error {
	if err := x.filterAnswer(resp); err != nil {
		return err
	}
	if x.entry != nil && x.target.Verb == "connect" {
		x.entry.Status = resp.StatusCode
		x.close(nil)
	}
	return nil
}

func (x *exchange) filterAnswer(resp *http.Response) error {
	empty := resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusNoContent ||
		resp.Request.Method == http.MethodHead
	contentType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return nil
	case empty && x.entry == nil:
		return nil
	case x.filter != nil && resp.StatusCode == http.StatusOK:
		return x.filterDocument(resp)
	case x.answer == nil:
		return nil
	case x.target.Verb == "watch" && resp.StatusCode == http.StatusOK:
		if contentType != jsonType {
			return fmt.Errorf("a watch of %s came as %s", x.target.Resource, contentType)
		}
		resp.Body = newWatchBody(*x.answer, resp.Body)
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
		return nil
	}
	return x.filterObjects(resp, contentType)
}

func (x *exchange) filterDocument(resp *http.Response) error {
	b, err := readAnswer(resp)
	if err != nil {
		return err
	}
	out, err := x.filter(resp.Header.Get("Content-Type"), b)
	if err != nil {
		return err
	}
	replaceBody(resp, out)
	return nil
}

// filterObjects handles answers of one piece about objects.
func (x *exchange) filterObjects(resp *http.Response, contentType string) error {
	b, err := readAnswer(resp)
	if err != nil {
		return err
	}
	out := b
	switch {
	case contentType == jsonType:
		var visible bool
		if out, visible, err = x.answer.document(b); err != nil {
			return err
		}
		if !visible {
			out = statusJSON(x.target.notFound())
			resp.StatusCode, resp.Status = http.StatusNotFound, "404 Not Found"
		}
	case resp.StatusCode < 300 && len(b) > 0:
		return fmt.Errorf("%s came as %s", x.target.Resource, contentType)
	}
	if x.entry != nil {
		x.finish(resp.Request.Context(), resp.StatusCode, out, b)
	}
	replaceBody(resp, out)
	return nil
}

func readAnswer(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(b) > maxAnswer {
		err = errors.New("the API server's answer is too long")
	}
	return b, err
}
