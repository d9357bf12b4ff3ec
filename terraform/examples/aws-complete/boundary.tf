# Stands for the boundary that your organization has: what no role that somebody makes may exceed.
resource "aws_iam_policy" "boundary" {
  name   = "bellhop-production-boundary"
  policy = data.aws_iam_policy_document.boundary.json
}

data "aws_iam_policy_document" "boundary" {
  statement {
    actions   = ["dynamodb:*", "ec2:*", "eks:DescribeCluster", "kms:*", "lambda:InvokeFunction", "logs:*", "s3:*", "secretsmanager:*", "sqs:*", "sts:AssumeRole"]
    resources = ["*"]
  }
}
