{{- define "aiopslab.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "aiopslab.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "aiopslab.labels" -}}
{{ include "aiopslab.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | quote }}
app.kubernetes.io/component: server
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "aiopslab.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "aiopslab.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "aiopslab.tokenSecret" -}}
{{- if .Values.tokenSecret }}{{ .Values.tokenSecret }}{{ else if .Values.token }}{{ include "aiopslab.name" . }}{{ else }}{{ fail "set tokenSecret, the name of a Secret with the key token, or token: whoever reaches the server must show it" }}{{ end }}
{{- end }}
