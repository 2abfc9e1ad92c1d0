package agnhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const uploadDir = "/uploads"

func (n *netexec) routes() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]http.HandlerFunc{
		"/":           n.handleRoot,
		"/clientip":   n.handleClientIP,
		"/serverport": n.handleServerPort,
		"/header":     n.handleHeader,
		"/dial":       n.handleDial,
		"/echo":       n.handleEcho,
		"/exit":       n.handleExit,
		"/healthz":    n.handleHealthz,
		"/readyz":     n.handleReadyz,
		"/hostname":   n.handleHostname,
		"/hostName":   n.handleHostname,
		"/envvar":     n.handleEnvvar,
		"/redirect":   n.handleRedirect,
		"/shell":      n.handleShell,
		"/shutdown":   n.handleShutdown,
		"/upload":     n.handleUpload,
	} {
		mux.HandleFunc(path, h)
	}
	return mux
}

// overridden answers every request as if it were for the path of the flag --http-override.
func (n *netexec) overridden(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		other, err := http.NewRequestWithContext(r.Context(), "GET", n.override, nil)
		if err != nil {
			http.Error(w, fmt.Sprintf("override request failed: %v", err), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, other)
	})
}

func (n *netexec) handleRoot(w http.ResponseWriter, _ *http.Request) {
	n.log.Printf("GET /")
	fmt.Fprintf(w, "NOW: %v", time.Now())
}

func (n *netexec) handleClientIP(w http.ResponseWriter, r *http.Request) {
	n.log.Printf("GET /clientip")
	fmt.Fprint(w, r.RemoteAddr)
}

func (n *netexec) handleServerPort(w http.ResponseWriter, _ *http.Request) {
	n.log.Printf("GET /serverport")
	fmt.Fprint(w, n.httpPort)
}

func (n *netexec) handleHostname(w http.ResponseWriter, r *http.Request) {
	n.log.Printf("GET %s", r.URL.Path)
	fmt.Fprint(w, n.env.Hostname)
}

func (n *netexec) handleHeader(w http.ResponseWriter, r *http.Request) {
	if key := r.FormValue("key"); key != "" {
		n.log.Printf("GET /header?key=%s", key)
		fmt.Fprint(w, r.Header.Get(key))
		return
	}
	n.log.Printf("GET /header")
	n.writeJSON(w, r.Header)
}

func (n *netexec) handleEcho(w http.ResponseWriter, r *http.Request) {
	msg, code := r.FormValue("msg"), r.FormValue("code")
	n.log.Printf("GET /echo?msg=%s&code=%s", msg, code)
	if code != "" {
		status, err := strconv.Atoi(code)
		if err != nil {
			fmt.Fprintf(w, "argument 'code' must be an integer or empty, got %q\n", code)
			return
		}
		w.WriteHeader(status)
	}
	fmt.Fprint(w, msg)
}

func (n *netexec) handleRedirect(w http.ResponseWriter, r *http.Request) {
	location, code := r.FormValue("location"), r.FormValue("code")
	n.log.Printf("%s /redirect?msg=%s&code=%s", r.Method, location, code)
	status := http.StatusFound
	if code != "" {
		var err error
		if status, err = strconv.Atoi(code); err != nil {
			fmt.Fprintf(w, "argument 'code' must be an integer or empty, got %q\n", code)
			return
		}
	}
	http.Redirect(w, r, location, status)
}

func (n *netexec) handleEnvvar(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("var")
	if name == "" {
		http.Error(w, "'var' query parameter is required", http.StatusBadRequest)
		return
	}
	n.log.Printf("GET /envvar?var=%s", name)
	value, ok := n.env.Vars[name]
	if !ok {
		http.Error(w, fmt.Sprintf("env var %q is not set", name), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, value)
}

// handleHealthz succeeds while the UDP server runs.
func (n *netexec) handleHealthz(w http.ResponseWriter, _ *http.Request) {
	n.log.Printf("GET /healthz")
	if !n.ready.Load() {
		w.WriteHeader(http.StatusPreconditionFailed)
	}
}

// handleReadyz does not succeed any more once the program was told to terminate.
func (n *netexec) handleReadyz(w http.ResponseWriter, _ *http.Request) {
	n.log.Printf("GET /readyz")
	select {
	case <-n.terminated:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "shutting down")
		return
	default:
	}
	if !n.ready.Load() {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	fmt.Fprint(w, "ok")
}

func (n *netexec) handleExit(w http.ResponseWriter, r *http.Request) {
	code, timeout, wait := r.FormValue("code"), r.FormValue("timeout"), r.FormValue("wait")
	n.log.Printf("GET /exit?code=%s&timeout=%s&wait=%s", code, timeout, wait)
	grace, err := time.ParseDuration(timeout)
	if err != nil && timeout != "" {
		fmt.Fprintf(w, "argument 'timeout' must be a valid golang duration or empty, got %q\n", timeout)
		return
	}
	delay, err := time.ParseDuration(wait)
	if err != nil && wait != "" {
		fmt.Fprintf(w, "argument 'wait' must be a valid golang duration or empty, got %q\n", wait)
		return
	}
	status, err := strconv.Atoi(code)
	if err != nil && code != "" {
		fmt.Fprintf(w, "argument 'code' must be an integer [0-127] or empty, got %q\n", code)
		return
	}
	n.log.Printf("Will begin shutdown in %s, allowing %s for connections to close, then will exit with %d", delay, grace, status)
	if sleep(r.Context(), delay) != nil {
		return
	}
	n.requestExit(exitRequest{status, grace})
	if grace == 0 {
		vanish(r)
	}
}

func (n *netexec) handleShutdown(_ http.ResponseWriter, r *http.Request) {
	n.log.Printf("GET /shutdown")
	n.requestExit(exitRequest{})
	vanish(r)
}

// handleShell runs a command and tells what it printed.
func (n *netexec) handleShell(w http.ResponseWriter, r *http.Request) {
	command := r.FormValue("shellCommand")
	if command == "" {
		command = r.FormValue("cmd")
	}
	n.log.Printf("GET /shell?cmd=%s", command)
	output := map[string]string{}
	printed, err := n.combinedOutput(r.Context(), "/bin/sh", "-c", command)
	if printed != "" {
		output["output"] = printed
	}
	if err != nil {
		output["error"] = err.Error()
	}
	n.log.Printf("Output: %s", output)
	n.writeJSON(w, output)
}

func (n *netexec) handleUpload(w http.ResponseWriter, r *http.Request) {
	n.log.Printf("GET /upload")
	name, problem, err := n.upload(r)
	if err != nil {
		n.log.Printf("%s: %s", problem, err)
		n.writeJSON(w, map[string]string{"error": problem + "."})
		return
	}
	n.log.Printf("Wrote upload to %s", name)
	w.WriteHeader(http.StatusCreated)
	n.writeJSON(w, map[string]string{"output": name})
}

// upload stores the form's file under a new name. The form is read as a stream, because package
// http would spill a large one to the host's own files.
func (n *netexec) upload(r *http.Request) (name, problem string, err error) {
	form, err := r.MultipartReader()
	var file *multipart.Part
	for err == nil && (file == nil || file.FormName() != "file") {
		file, err = form.NextPart()
	}
	if err != nil {
		return "", "Unable to upload file", err
	}
	var f kit.File
	for {
		name = fmt.Sprintf("%s/upload%d", uploadDir, rand.Uint32())
		f, err = n.env.FS.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, os.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", "Unable to open file for write", err
	}
	defer f.Close()
	if _, err := io.Copy(f, file); err != nil {
		return "", "Unable to write file", err
	}
	if err := n.env.FS.Chmod(name, 0o700); err != nil {
		return "", "Unable to chmod file", err
	}
	return name, "", nil
}

// writeJSON answers with a document. No header says so; the real program sends none either.
func (n *netexec) writeJSON(w io.Writer, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		n.log.Printf("response could not be serialized. %v", err)
		return
	}
	w.Write(data)
}
