# What each installation draws for names that a destroy leaves taken: the sealing key can be had back
# for days, and so can secrets of clusters. The next installation of the name has other ones.
resource "terraform_data" "generation" {
}

locals {
  generation = substr(terraform_data.generation.id, 0, 8)

  # How the names of clusters' secrets begin.
  secrets = "${var.name}/${local.generation}"
}

# The sealing key is drawn by AWS, written once, and never in the state or in a plan.
ephemeral "aws_secretsmanager_random_password" "sealing_key" {
  password_length = 64
}

# Its name does not begin as those of clusters' secrets do, so that no list of them has it.
resource "aws_secretsmanager_secret" "sealing_key" {
  name                    = "${var.name}-sealing-key-${local.generation}"
  description             = "Seals records of Bellhop ${var.name}: without it they are lost."
  kms_key_id              = local.kms_key
  recovery_window_in_days = var.recovery_days
  tags                    = local.labels
}

resource "aws_secretsmanager_secret_version" "sealing_key" {
  secret_id                = aws_secretsmanager_secret.sealing_key.id
  secret_string_wo         = base64sha256(ephemeral.aws_secretsmanager_random_password.sealing_key.random_password)
  secret_string_wo_version = 1
}

# Ingest faces the Internet, and has a key of its own for the few records that it reads and writes.
ephemeral "aws_secretsmanager_random_password" "ingest_key" {
  password_length = 64
}

resource "aws_secretsmanager_secret" "ingest_key" {
  name                    = "${var.name}-ingest-key-${local.generation}"
  description             = "Seals what ingest of Bellhop ${var.name} reads and writes."
  kms_key_id              = local.kms_key
  recovery_window_in_days = var.recovery_days
  tags                    = local.labels
}

resource "aws_secretsmanager_secret_version" "ingest_key" {
  secret_id                = aws_secretsmanager_secret.ingest_key.id
  secret_string_wo         = base64sha256(ephemeral.aws_secretsmanager_random_password.ingest_key.random_password)
  secret_string_wo_version = 1
}
