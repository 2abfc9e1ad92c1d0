{{- define "labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/instance: one
{{- end -}}
